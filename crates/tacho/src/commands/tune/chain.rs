//! `tacho tune chain`: the capacity of each layer of a stack, and the narrowest layer. The crate `tune` measures them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bench::report::default_directory;
use clap::Args;
use tune::chain::{Chain, ChainReport};

use crate::load_context::context;
use crate::output::{fail, say};

/// The exit code if the chain could not be measured.
const COULD_NOT_MEASURE: u8 = 2;

/// Measures each layer of a stack and names the narrowest
///
/// FILE lists the layers in the order in which a message passes them. For each layer the command makes the search of
/// `tacho bench capacity`, or reads a finished one, and converts the answer to messages of the whole chain per second. If the
/// intervals of two layers overlap, it states that it cannot tell which is the narrowest. A layer that fails does not stop
/// the others. docs/tune/chain.md has the keys of FILE.
///
/// Exit codes: 0 the narrowest layer is known; 1 it is not; 2 FILE is wrong, or the command could not run.
#[derive(Debug, Args)]
#[command(after_help = "\
FILE:
  [[layer]]
  name = \"gateway\"
  scenario = \"http-qps\"
  phase = \"keep-alive\"
  target = \"http://127.0.0.1:8080/\"
  slo = \"p99<=20ms\"
  operations_per_message = 1.0

  [[layer]]
  name = \"database\"
  bundle = \"bench-runs/database\"
  operations_per_message = 0.01

Examples:
  tacho tune chain docs/tune/chain-example.toml
  tacho tune chain my-stack.toml --out results/stack
  tacho tune chain my-stack.toml --json")]
pub(super) struct ChainArgs {
    /// File of the layers
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory of the results [default: bench-runs/UTC-chain]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints JSON; the steps go to standard error
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ChainArgs) -> ExitCode {
    let printed = context().and_then(|context| report(args, &context)).and_then(|report| {
        say(if args.json { report.json() } else { report.text() })?;
        Ok(report.is_certain())
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // It is a success if the reader of the output has closed the pipe.
        Err(error) if fail(&error) == ExitCode::SUCCESS => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(COULD_NOT_MEASURE),
    }
}

fn report(args: &ChainArgs, context: &bench::Context) -> anyhow::Result<ChainReport> {
    let chain = Chain::read(&args.file)?;
    let directory = args.out.clone().unwrap_or_else(|| default_directory("chain"));
    let mut progress: Box<dyn Write> =
        if args.json { Box::new(std::io::stderr()) } else { Box::new(std::io::stdout()) };
    Ok(tune::chain::run(&chain, &directory, context, progress.as_mut())?)
}
