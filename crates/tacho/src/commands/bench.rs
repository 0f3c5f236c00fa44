//! `tacho bench`: the commands of the load generator, which the crate `bench` implements.

use crate::load_context::context;

pub(crate) use bench::command::BenchCommand;

pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    Ok(bench::command::run(command, &context()?, &mut std::io::stdout())?)
}
