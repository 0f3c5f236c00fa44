//! `tacho tune`: looks at a target and prints what to change. The crate `tune` has the rules and the probe.

mod chain;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use bench::clients::{target_password, without_password};
use clap::{Args, Subcommand};
use tune::{Product, Report, Target, advise, probe};

use crate::output::{fail, say};

/// The exit code if the command could not look at the target.
const COULD_NOT_LOOK: u8 = 2;

/// Looks at a machine or a server and says which settings to change, why, and how to undo the change
///
/// The command only reads. `host:` looks at this machine as the host of a server, `host:generator` as the host of a load
/// generator. A URL looks at a running server: MySQL, MariaDB, Percona Server, PostgreSQL, Redis, Valkey, Elasticsearch or
/// OpenSearch (an INDEX looks at this index only), the master of HBase with its region servers, a node of Cassandra, or a
/// Tachograph server. A database at a loopback address is also judged by the memory, the processors and the kernel of this
/// machine.
///
/// The findings are ordered by their expected effect. Each has the current and the suggested value, the evidence, the
/// reason, the risk, the command for the change and the one that undoes it.
///
/// The password of a target stands in its URL, where special characters are written %40 and the like. That of a database may
/// be in TACHO_TARGET_PASSWORD instead.
///
/// Counters are taken since the start of the machine or server, or with --window in the next seconds: run it during the load.
///
/// Exit codes: 0 no findings; 1 findings; 2 the target could not be looked at, or the command line is wrong.
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
    #[command(subcommand)]
    command: Option<TuneCommand>,
}

/// The other commands of `tacho tune`.
#[derive(Debug, Subcommand)]
enum TuneCommand {
    Chain(chain::ChainArgs),
}

/// Runs the command. `bench_context` is called only if a load is run.
pub(crate) fn run(args: &TuneArgs, bench_context: fn() -> anyhow::Result<bench::Context>) -> ExitCode {
    if let Some(TuneCommand::Chain(args)) = &args.command {
        return chain::run(args, bench_context);
    }
    let printed = report(args).and_then(|report| {
        say(if args.json { report.json() } else { report.text() })?;
        Ok(report.advice.findings.is_empty())
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // It is a success if the reader of the output has closed the pipe.
        Err(error) if fail(&error) == ExitCode::SUCCESS => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(COULD_NOT_LOOK),
    }
}

fn report(args: &TuneArgs) -> anyhow::Result<Report> {
    let text = args.target.as_deref().expect("BUG: clap requires a target without a subcommand");
    let target: Target = text.parse()?;
    let context = probe::Context {
        has_window: args.window.is_some(),
        client_config: args.client_config.clone(),
        password: target_password(),
    };
    let mut probe = probe::connect(&target, &context)?;
    let observation =
        probe::observe(probe.as_mut(), args.window.map(Duration::from_secs), &mut |time| sleep(time))?;
    let identity = probe.identity();
    let product = Product::named(identity.product)
        .with_context(|| format!("BUG: there are no rules for {}", identity.product))?;
    Ok(Report::new(&without_password(text), &identity.title, &observation, advise(product, &observation)))
}
