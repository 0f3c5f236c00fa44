//! `tacho sensor`: virtual sensors, without a server and of one that runs. The crate `sensors` has their form and their execution.

mod check;
mod file;
mod list;
mod run;

use clap::Subcommand;

use check::{CheckArgs, ExplainArgs};
use list::ListArgs;
use run::RunArgs;

/// The subcommands of `tacho sensor`.
#[derive(Debug, Subcommand)]
pub(crate) enum SensorCommand {
    Check(CheckArgs),
    Explain(ExplainArgs),
    Run(RunArgs),
    List(ListArgs),
}

pub(crate) fn run(command: &SensorCommand) -> anyhow::Result<()> {
    match command {
        SensorCommand::Check(args) => check::check(args),
        SensorCommand::Explain(args) => check::explain(args),
        SensorCommand::Run(args) => run::run(args),
        SensorCommand::List(args) => list::run(args),
    }
}
