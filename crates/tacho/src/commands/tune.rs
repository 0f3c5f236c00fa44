//! `tacho tune`: looks at a target and prints what to change. The crate `tune` has the rules and the probe.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use tune::host::{Counters, HostRoot, observe};
use tune::probe::{connect, observation};
use tune::{Endpoint, HostRole, Product, Report, Server, Target, advise, without_login};

use crate::output::{fail, say};

/// The exit code if the command could not look at the target.
const COULD_NOT_LOOK: u8 = 2;

/// Looks at a machine or a server and says which settings to change, why, and how to undo the change
///
/// The command only reads. `host:` looks at this machine as the host of a server, `host:generator` as the host of a load
/// generator. A URL looks at a running server: Elasticsearch or OpenSearch (an INDEX looks at this index only), the master
/// of HBase with its region servers, a node of Cassandra, or a Tachograph server.
///
/// The findings are ordered by their expected effect. Each has the current and the suggested value, the evidence, the
/// reason, the risk, the command for the change and the one that undoes it.
///
/// Counters are taken since the start of the machine or server, or with --window in the next seconds: run it during the load.
///
/// Exit codes: 0 no findings; 1 findings; 2 the target could not be looked at, or the command line is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Targets:
  host:                                          this machine as the host of a server
  host:generator                                 this machine as the host of a load generator
  http://[USER:PASSWORD@]HOST[:9200][/INDEX]     Elasticsearch or OpenSearch; also es://
  hbase://HOST[:16010]                           HBase: the HTTP port of the master
  cassandra://[USER:PASSWORD@]HOST[:9042]        Cassandra: the native protocol of a node
  tacho://[USER:PASSWORD@]HOST[:8080]            Tachograph: the HTTP port

Examples:
  tacho tune host:
  tacho tune host:generator --window 30
  tacho tune http://127.0.0.1:9200/logs --window 30
  tacho tune hbase://master:16010 --client-config /etc/hbase/conf/hbase-site.xml
  tacho tune host: --json")]
pub(crate) struct TuneArgs {
    /// The machine or server, see Targets below
    #[arg(value_name = "TARGET")]
    target: String,
    /// Counts for this time instead of since the start of the machine or server
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    window: Option<u64>,
    /// The client's hbase-site.xml, for the rules about clients of HBase
    #[arg(long, value_name = "FILE")]
    client_config: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &TuneArgs) -> ExitCode {
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
    match args.target.parse()? {
        Target::Host(role) => report_of_host(args, role),
        Target::Server(server, endpoint) => report_of_server(args, server, &endpoint),
    }
}

fn report_of_host(args: &TuneArgs, role: HostRole) -> anyhow::Result<Report> {
    ensure!(args.client_config.is_none(), "--client-config: a target host: has no client; leave the option out");
    let product = Product::named("linux").context("BUG: there are no rules for linux")?;
    let files = HostRoot::new("/");
    let before = args.window.map(|seconds| {
        let before = Counters::read(&files);
        sleep(Duration::from_secs(seconds));
        before
    });
    let observation = observe(&files, product, role, before.as_ref())?;
    let title = match role {
        HostRole::Server => "This machine as the host of a server",
        HostRole::Generator => "This machine as the host of a load generator",
    };
    Ok(Report::new(&args.target, title, &observation, advise(product, &observation)))
}

fn report_of_server(args: &TuneArgs, server: Server, endpoint: &Endpoint) -> anyhow::Result<Report> {
    let mut probe = connect(server, endpoint, args.client_config.as_deref())?;
    let identity = probe.identity().clone();
    let product = Product::named(identity.product);
    let product = product.with_context(|| format!("BUG: there are no rules for {}", identity.product))?;
    let first = probe.sample()?;
    let (before, after) = match args.window {
        None => (None, first),
        Some(seconds) => {
            let start = Instant::now();
            sleep(Duration::from_secs(seconds));
            let second = probe.sample()?;
            (Some((first, start.elapsed().as_secs_f64())), second)
        }
    };
    let before = before.as_ref().map(|(sample, window_s)| (sample, *window_s));
    let observation = observation(&identity, before, &after)?;
    let advice = advise(product, &observation);
    let report = Report::new(&without_login(&args.target), &identity.title, &observation, advice);
    Ok(report.with_hidden(after.hidden))
}
