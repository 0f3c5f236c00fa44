//! `tacho tune`: looks at a target and prints what to change; makes, undoes and measures a change. The crate `tune` has the
//! rules and the probes.

mod apply;
mod inspected_target;
mod prove;

mod chain;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use clients::passwords;
use clients::target_url::without_password;
use tune::{Product, Report, Target, advise, probe};

use crate::output::{fail, say};
use apply::ApplyArgs;
use inspected_target::{COULD_NOT, InspectedTarget};
use prove::ProveArgs;

/// Looks at a machine or a server and states which settings to change and why; makes a change, undoes it, or measures it
///
/// Without --apply, --undo and --prove the command only reads. `host:` looks at this machine as the host of a server, `host:generator` as the host of a load
/// generator. A URL looks at a running server: MySQL, MariaDB, Percona Server, PostgreSQL, Redis, Valkey, Elasticsearch or
/// OpenSearch (an INDEX looks at this index only), the master of HBase with its region servers, a node of Cassandra, or a
/// Tachograph server. A database at a loopback address is also judged by the memory, the processors and the kernel of this
/// machine.
///
/// The findings are ordered by their expected effect. Each has the current and the suggested value, the evidence, the
/// reason, the risk, the command for the change and the one that undoes it.
///
/// The password of a target is in its URL, where special characters are written %40 and the like. That of a database may
/// be in TACHO_TARGET_PASSWORD instead.
///
/// Counters are taken since the start of the machine or server, or with --window in the next seconds: run it during the load.
///
/// --apply shows the change, its undo and its risk, asks, writes an undo file, makes the change, and reads the parameter again.
/// --undo FILE restores the values. --prove measures a change: the load of a scenario runs on the target as it is (A) and with
/// the change (B), in random order; the verdict is better, worse, equivalent or cannot tell. The target is then restored, also
/// after an error, Ctrl-C or SIGTERM. A second Ctrl-C ends the command at once; undo.json in the results then restores the target.
///
/// Exit codes: 0 no findings; 1 findings, or the user has said no; 2 the target could not be looked at or changed, the proof has no
/// answer, or the command line is wrong.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Targets:
  host:                                          this machine as the host of a server
  host:generator                                 this machine as the host of a load generator
  mysql://[USER[:PASSWORD]@]HOST[:3306]          MySQL, MariaDB, Percona Server; also mariadb://
  postgres://[USER[:PASSWORD]@]HOST[:5432][/DB]  PostgreSQL: the server, and the tables of one database
  redis://[[USER]:PASSWORD@]HOST[:6379]          Redis, Valkey; also valkey://
  http://[USER:PASSWORD@]HOST[:9200][/INDEX]     Elasticsearch or OpenSearch; also es://
  hbase://HOST[:16010]                           HBase: the HTTP port of the master
  cassandra://[USER:PASSWORD@]HOST[:9042]        Cassandra: the native protocol of a node
  tacho://[USER:PASSWORD@]HOST[:8080]            Tachograph: the HTTP port

Examples:
  tacho tune host:
  tacho tune host:generator --window 30
  tacho tune mysql://root@127.0.0.1:3306 --window 60
  tacho tune postgres://postgres@db:5432/telemetry
  tacho tune redis://127.0.0.1:6379
  tacho tune http://127.0.0.1:9200/logs --window 30
  tacho tune hbase://master:16010 --client-config /etc/hbase/conf/hbase-site.xml
  tacho tune host: --json
  tacho tune redis://127.0.0.1:6379 --apply redis-maxmemory,redis-latency-monitor
  tacho tune postgres://postgres@db:5432 --apply all --undo-file before.json
  tacho tune postgres://postgres@db:5432 --undo before.json
  tacho tune redis://127.0.0.1:6379 --prove redis-appendfsync --value no --scenario gemini-str32 --set phase.run.duration=10s
  tacho tune mysql://root@127.0.0.1 --prove mysql-flush-log-at-commit --scenario sysbench-oltp-write-only --keep
  tacho tune redis://127.0.0.1:6379 --prove redis-io-threads --value 2 --scenario gemini-str32 --change-command ./two-threads.sh --undo-command ./one-thread.sh --restart-command 'systemctl restart redis'
  tacho tune chain my-stack.toml")]
pub(crate) struct TuneArgs {
    /// The machine or server, see Targets below
    #[arg(value_name = "TARGET", required = true)]
    target: Option<String>,
    /// Counts for this time instead of since the start of the machine or server
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    window: Option<u64>,
    /// The client's hbase-site.xml, for the rules about clients of HBase
    #[arg(long, value_name = "FILE")]
    client_config: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    change: ApplyArgs,
    #[command(flatten)]
    proof: ProveArgs,
    #[command(subcommand)]
    command: Option<TuneCommand>,
}

/// The other commands of `tacho tune`.
#[derive(Debug, Subcommand)]
enum TuneCommand {
    Chain(chain::ChainArgs),
}

pub(crate) fn run(args: &TuneArgs) -> ExitCode {
    if let Some(TuneCommand::Chain(args)) = &args.command {
        return chain::run(args);
    }
    match act(args) {
        Ok(code) => code,
        // It is a success if the reader of the output has closed the pipe.
        Err(error) if fail(&error) == ExitCode::SUCCESS => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(COULD_NOT),
    }
}

fn act(args: &TuneArgs) -> anyhow::Result<ExitCode> {
    args.change.check(args.proof.prove.is_some())?;
    args.proof.check()?;
    let mut looked = look(args)?;
    if let Some(rule) = &args.proof.prove {
        return prove::run(&args.proof, rule, args.change.value.as_deref(), looked);
    }
    if let Some(file) = &args.change.undo {
        return apply::undo(&args.change, file, &mut looked);
    }
    if !args.change.apply.is_empty() {
        return apply::apply(&args.change, &mut looked);
    }
    let InspectedTarget { shown_target, probe, product, observation, .. } = &looked;
    let advice = advise(product, observation);
    let report = Report::new(shown_target, &probe.identity().title, observation, advice);
    say(if args.json { report.json() } else { report.text() })?;
    Ok(if report.advice.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn look(args: &TuneArgs) -> anyhow::Result<InspectedTarget> {
    let text = args.target.as_deref().expect("BUG: clap requires a target without a subcommand");
    let target: Target = text.parse()?;
    let context = probe::Context {
        has_window: args.window.is_some(),
        client_config: args.client_config.clone(),
        password: passwords::target(),
    };
    let mut probe = probe::connect(&target, &context)?;
    let observation =
        probe::observe(probe.as_mut(), args.window.map(Duration::from_secs), &mut |time| sleep(time))?;
    let id = probe.identity().product;
    let product = Product::named(id).with_context(|| format!("BUG: there are no rules for {id}"))?;
    Ok(InspectedTarget {
        target,
        written_target: text.to_owned(),
        shown_target: without_password(text),
        context,
        probe,
        product,
        observation,
    })
}
