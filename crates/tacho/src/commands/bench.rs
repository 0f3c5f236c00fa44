//! `tacho bench`: the load generator's commands. What they do is in the crate `bench`.

use anyhow::Context as _;
use bench::Context;

use crate::program;

pub(crate) use bench::command::BenchCommand;

/// Runs a subcommand.
pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    Ok(bench::command::run(command, &context()?, &mut std::io::stdout())?)
}

/// What a run needs to know about this program: it starts itself as the server under test and as a part of the load.
fn context() -> anyhow::Result<Context> {
    let server_binary = std::env::current_exe().context("cannot find the program to start as the server")?;
    let worker_arguments = ["bench", "worker"].map(str::to_owned).into();
    // Results are published: where the program lies on this machine is nobody's business.
    let command_line = std::iter::once(program::NAME.to_owned()).chain(std::env::args().skip(1)).collect();
    let commit = Some(env!("TACHO_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned);
    let program = program::name().to_owned();
    Ok(Context { server_binary, worker_arguments, command_line, commit, program })
}
