//! `tacho tune`: looks at a target and prints what to change. The crate `tune` has the rules and the probe.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tune::{Product, Report, Target, advise, probe};

use crate::output::{fail, say};

/// The exit code if the command could not look at the target.
const COULD_NOT_LOOK: u8 = 2;

/// Looks at this machine and says which settings to change, why, and how to undo the change
///
/// The command only reads. `host:` looks at this machine as the host of a server, `host:generator` as the host of a load
/// generator. The findings are ordered by their expected effect. Each has the current and the suggested value, the
/// evidence, the reason, the risk, the command for the change and the one that undoes it.
///
/// Counters are taken since the machine has started, or with --window in the next seconds: run it during the load.
///
/// Exit codes: 0 no findings; 1 findings; 2 the target could not be looked at, or the command line is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho tune host:
  tacho tune host:generator --window 30
  tacho tune host: --json")]
pub(crate) struct TuneArgs {
    /// host: or host:generator
    #[arg(value_name = "TARGET")]
    target: String,
    /// Counts for this time instead of since the start of the machine
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    window: Option<u64>,
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
    let target: Target = args.target.parse()?;
    let context = probe::Context { has_window: args.window.is_some(), ..Default::default() };
    let mut probe = probe::connect(&target, &context)?;
    let observation =
        probe::observe(probe.as_mut(), args.window.map(Duration::from_secs), &mut |time| sleep(time))?;
    let identity = probe.identity();
    let product = Product::named(identity.product)
        .with_context(|| format!("BUG: there are no rules for {}", identity.product))?;
    Ok(Report::new(&args.target, &identity.title, &observation, advise(product, &observation)))
}
