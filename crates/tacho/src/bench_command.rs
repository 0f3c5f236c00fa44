//! `tacho bench`: the load generator's commands. What they do is in the crate `bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use bench::Context;
use bench::scenario::{Run, Scenario};
use bench::{ledger, reads, thingsboard};
use clap::{Args, Parser, Subcommand};

use crate::cli::output::say;

/// Where scenario files are looked for.
const SCENARIOS: &str = "scenarios";

/// Load tests and the loss ledger
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    #[command(subcommand)]
    Run(RunCommand),
    Ledger(Box<ledger::Options>),
    Scenario(ScenarioArgs),
    List(ListArgs),
}

/// Runs a load
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    Thingsboard(Box<thingsboard::Options>),
    Reads(Box<reads::Options>),
}

/// Runs what a scenario file describes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench scenario scenarios/thingsboard.toml saturation
  tacho bench scenario scenarios/thingsboard.toml article -- --duration 10s --out /tmp/result")]
pub(crate) struct ScenarioArgs {
    /// The file
    file: PathBuf,
    /// Name of the run in it
    run: String,
    /// More options of that command
    #[arg(last = true)]
    more: Vec<String>,
}

/// Lists the runs of scenario files, each as the command that it stands for
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The files [default: scenarios/*.toml]
    files: Vec<PathBuf>,
}

/// A scenario's command, as it is read from a file.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
enum FileCommand {
    Thingsboard(Box<thingsboard::Options>),
    Reads(Box<reads::Options>),
    Ledger(Box<ledger::Options>),
}

/// Runs a subcommand.
pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Run(RunCommand::Thingsboard(options)) => run_thingsboard(options),
        BenchCommand::Run(RunCommand::Reads(options)) => run_reads(options),
        BenchCommand::Ledger(options) => run_ledger(options),
        BenchCommand::Scenario(args) => run_scenario(args),
        BenchCommand::List(args) => list(args),
    }
}

fn run_thingsboard(options: &thingsboard::Options) -> anyhow::Result<()> {
    let (report, directory) = thingsboard::run(options, &context()?)?;
    say(&report)?;
    say(format_args!("result: {}", directory.display()))?;
    if report.verdict.valid { Ok(()) } else { bail!("the run is not valid; its figures must not be quoted") }
}

fn run_reads(options: &reads::Options) -> anyhow::Result<()> {
    let (report, directory) = reads::run(options, &context()?)?;
    say(&report)?;
    say(format_args!("result: {}", directory.display()))
}

fn run_ledger(options: &ledger::Options) -> anyhow::Result<()> {
    let (report, directory) = ledger::run(options, &context()?)?;
    say(&report)?;
    say(format_args!("result: {}", directory.display()))?;
    if report.kept() { Ok(()) } else { bail!("the server broke its promise: see the result") }
}

fn run_scenario(args: &ScenarioArgs) -> anyhow::Result<()> {
    let scenario = Scenario::load(&args.file)?;
    let run = scenario.run(&args.run).map_err(|error| anyhow!("{}: {error}", args.file.display()))?;
    let mut words = words(&scenario, run)?;
    words.extend(args.more.iter().cloned());
    match FileCommand::try_parse_from(&words) {
        Ok(FileCommand::Thingsboard(options)) => run_thingsboard(&options),
        Ok(FileCommand::Reads(options)) => run_reads(&options),
        Ok(FileCommand::Ledger(options)) => run_ledger(&options),
        Err(error) => bail!("{}, run {}: {error}", args.file.display(), args.run),
    }
}

fn words(scenario: &Scenario, run: &Run) -> anyhow::Result<Vec<String>> {
    let arguments = run.arguments().map_err(|error| anyhow!(error))?;
    Ok(std::iter::once(scenario.scenario.clone()).chain(arguments).collect())
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let files =
        if args.files.is_empty() { scenario_files(Path::new(SCENARIOS))? } else { args.files.clone() };
    for file in files {
        let scenario = Scenario::load(&file)?;
        for run in &scenario.runs {
            let words = words(&scenario, run)?.join(" ");
            // `ledger` is a command of its own, all others are loads.
            let kind = if scenario.scenario == "ledger" { "" } else { "run " };
            say(format_args!(
                "{} {}\n  {}\n  tacho bench {kind}{words}",
                file.display(),
                run.name,
                run.about
            ))?;
        }
    }
    Ok(())
}

fn scenario_files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory);
    let entries =
        entries.with_context(|| format!("there is no directory {SCENARIOS} here; name scenario files"))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    Ok(files)
}

/// What a run needs to know about this program: it starts itself as the server under test.
fn context() -> anyhow::Result<Context> {
    let server_binary = std::env::current_exe().context("cannot find the program to start as the server")?;
    // Results are published: where the program lies on this machine is nobody's business.
    let command_line = std::iter::once("tacho".to_owned()).chain(std::env::args().skip(1)).collect();
    let commit = Some(env!("TACHO_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned);
    Ok(Context { server_binary, command_line, commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_the_scenario_files_is_a_command() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SCENARIOS);
        let files = scenario_files(&directory).unwrap();
        assert!(files.len() >= 2, "{files:?}");
        for file in files {
            let scenario = Scenario::load(&file).unwrap();
            for run in &scenario.runs {
                let words = words(&scenario, run).unwrap();
                FileCommand::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
}
