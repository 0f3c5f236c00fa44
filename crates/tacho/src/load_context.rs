//! What the load generator must know about this program.

use anyhow::Context as _;
use bench::Context;

use crate::program;

/// What a run must know about this program, which it starts as the server under test and as a load worker.
pub(crate) fn context() -> anyhow::Result<Context> {
    let server_binary = std::env::current_exe().context("cannot find the program to start as the server")?;
    let worker_arguments = ["bench", "worker"].map(str::to_owned).into();
    // Results are published, so they do not contain the program's path on this machine.
    let command_line = std::iter::once(program::NAME.to_owned()).chain(std::env::args().skip(1)).collect();
    let commit = Some(env!("TACHO_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned);
    let program = program::name().to_owned();
    Ok(Context { server_binary, worker_arguments, command_line, commit, program })
}
