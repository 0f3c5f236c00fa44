//! The `tacho` binary: reads the command line and hands over.

mod bench_command;
mod bulk;
mod cli;
mod client;
mod config;
mod config_command;
mod demo;
mod device;
mod fleet;
mod import;
mod limits;
mod logging;
mod panics;
mod progress;
mod registry;
mod serve;
mod server;
mod simulator;
mod sql;
mod status;
mod upkeep;
mod user;

/// Counts what SQL statements allocate, so that none takes the memory of the others.
#[global_allocator]
static ALLOCATOR: query::CountingAllocator = query::CountingAllocator;

fn main() -> std::process::ExitCode {
    cli::run()
}
