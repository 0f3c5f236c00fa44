//! The command line of the load generator. A program only delegates to it.

mod ab;
mod ab_slices;
mod advice;
mod capacity;
mod eval_queries;
mod generators;
mod hitsdb;
mod ledger;
mod list;
mod login_options;
mod options_file;
mod output;
mod quick;
mod run;
mod scenario_options;
mod series;
mod sets;
mod signals;
mod thingsboard;
mod worker;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use ab::{Arms, ChangeCompared, ChangeOptions, ChangeSides, Primary, compare_change};

use load::scenario::Scenario;
use load::{Error, Result};
use targets::Context;

use crate::bundles::{self, BundleCommand};
use options_file::OptionsFile;
use output::write_line;
use scenario_options::ScenarioOptions;

pub use capacity::{CapacityArgs, search_capacity};
pub use options_file::arguments;
pub use signals::stop_on_signals;

/// Load tests, and the ledger of what was acknowledged
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Runs a scenario or one of the loads with options of their own
    Run(RunArgs),
    /// Runs what a file of options describes
    Scenario(ScenarioArgs),
    /// Lists the scenarios, a line each, and the runs of files of options; words choose among them
    List(list::ListArgs),
    /// Finds the rate up to which an objective is met, with its interval
    Capacity(Box<CapacityArgs>),
    /// Compares two settings, interleaved in random order: better, worse, equivalent or cannot tell
    Ab(Box<ab::AbArgs>),
    /// `compare`, `report`, `import`
    #[command(flatten)]
    Bundles(BundleCommand),
    /// Makes a part of a load for another process, which talks to it by standard input and output
    #[command(hide = true)]
    Worker,
}

/// Runs a load
#[derive(Debug, Args)]
#[command(after_help = "\
Options of a scenario: tacho bench run NAME --help, for any NAME of `tacho bench list`. --quick makes a first try of seconds.
`thingsboard`, `ledger`, `hitsdb` and `eval-queries` have more.

Examples:
  tacho bench run redis-get --target redis://127.0.0.1:6379 --quick
  tacho bench run gemini-str32 --target redis://127.0.0.1:6379 --scale 0.0001
  tacho bench run gemini-mix --set phase.run.duration=30s --phase run --workers 2
  tacho bench run http-qps --target http://10.0.0.5/ --worker-command 'ssh gen2 tacho bench worker'
  tacho bench run my-scenario.toml --out results/first
  tacho bench run thingsboard --devices 1000 --rate 1000
  tacho bench run hitsdb --protocol influx --timelines 10000 --clients 1,2
  tacho bench run eval-queries --target http://127.0.0.1:22001 --queries 20 --max-query-size 5000")]
pub struct RunArgs {
    /// Name of a scenario or a file, then its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "NAME|FILE")]
    words: Vec<String>,
}

/// Runs what a file of options describes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench scenario scenarios/thingsboard-runs.toml saturation
  tacho bench scenario scenarios/thingsboard-runs.toml article -- --duration 10s --out /tmp/result")]
pub struct ScenarioArgs {
    file: PathBuf,
    /// Name of the run in it
    run: String,
    /// More options of that command
    #[arg(last = true)]
    more: Vec<String>,
}

/// A command of an options file.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
enum FileCommand {
    Thingsboard(Box<thingsboard::Options>),
    Ledger(Box<ledger::Options>),
    Hitsdb(Box<hitsdb::Options>),
    EvalQueries(Box<eval_queries::Options>),
}

/// Runs a subcommand and writes its output to `out`. An invalid run is [`Error::Verdict`].
pub fn run(command: &BenchCommand, context: &Context, out: &mut dyn Write) -> Result<()> {
    match command {
        BenchCommand::Run(args) => run_words(&args.words, context, out),
        BenchCommand::Scenario(args) => run_file(args, context, out),
        BenchCommand::List(args) => list::run(args, context, out),
        BenchCommand::Capacity(args) => search_capacity(args, context, out).map(drop),
        BenchCommand::Ab(args) => ab::run(args, context, out),
        BenchCommand::Bundles(command) => bundles::run(command, out),
        BenchCommand::Worker => worker::serve(context),
    }
}

/// Runs `thingsboard`, `ledger`, `hitsdb` and `eval-queries` with their own options, and any other scenario with the common ones.
fn run_words(words: &[String], context: &Context, out: &mut dyn Write) -> Result<()> {
    if matches!(words[0].as_str(), thingsboard::NAME | ledger::NAME | hitsdb::NAME | eval_queries::NAME) {
        return match parsed::<FileCommand>(words, out)? {
            Some(command) => run_command(&command, context, out),
            None => Ok(()),
        };
    }
    match parsed::<run::Line>(words, out)? {
        Some(line) => run::line(&line, context, out),
        None => Ok(()),
    }
}

/// Parses words. Returns `None` after it has printed the requested help.
fn parsed<P: Parser>(words: &[String], out: &mut dyn Write) -> Result<Option<P>> {
    match P::try_parse_from(words) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(help) if !help.use_stderr() => write_line(out, &help.to_string()).map(|()| None),
        Err(error) => Err(Error::Options(error.to_string())),
    }
}

fn run_command(command: &FileCommand, context: &Context, out: &mut dyn Write) -> Result<()> {
    let (scenario, common) = command.scenario()?;
    run::scenario(&scenario, common, context, out)
}

impl FileCommand {
    /// The scenario of the options, and the common options.
    fn scenario(&self) -> Result<(Scenario, &ScenarioOptions)> {
        let (name, sets, common) = match self {
            Self::Thingsboard(options) => (thingsboard::NAME, options.sets()?, &options.common),
            Self::Ledger(options) => (ledger::NAME, options.sets(), &options.common),
            Self::Hitsdb(options) => (hitsdb::NAME, options.sets()?, &options.common),
            Self::EvalQueries(options) => (eval_queries::NAME, options.sets(), &options.common),
        };
        Ok((common.scenario(name, &sets)?, common))
    }
}

/// The scenario of a command line, if its driver accepts it.
#[cfg(test)]
fn understood(line: &str) -> std::result::Result<Scenario, String> {
    let command = FileCommand::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
    let (scenario, _) = command.scenario().map_err(|error| error.to_string())?;
    targets::driver_of(&scenario).map(|_| scenario)
}

fn run_file(args: &ScenarioArgs, context: &Context, out: &mut dyn Write) -> Result<()> {
    let file = OptionsFile::load(&args.file)?;
    let wrong = |what: String| Error::Scenario { path: args.file.clone(), what };
    let run = file.run(&args.run).map_err(wrong)?;
    let mut words = file.command_line(run).map_err(wrong)?;
    words.extend(args.more.iter().cloned());
    match FileCommand::try_parse_from(&words) {
        Ok(command) => run_command(&command, context, out),
        Err(error) => Err(wrong(format!("run {}: {error}", args.run))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_scenario_has_leads_to_the_scenario() {
        let run = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let mut out = Vec::new();
            let result = run_words(&words, &Context::default(), &mut out);
            (String::from_utf8(out).unwrap(), result)
        };
        assert!(run("thingsboard --help").0.contains("--devices"));
        assert!(run("ledger --help").0.contains("--kills"));
        assert!(run("gemini-mix --help").0.contains("--workers"));
        let error = run("thingsboard --set phase.rnu.rate=1").1.unwrap_err().to_string();
        assert!(error.contains("there is none called `rnu`"), "{error}");
    }
}
