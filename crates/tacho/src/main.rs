//! The `tacho` binary.
//!
//! From top to bottom: `cli` parses the command line, `commands` has one module per command, the other modules are shared
//! by commands. No command imports another.

mod cli;
mod client;
mod commands;
mod config;
mod confirm;
mod data_args;
mod data_directory;
mod demo_sensors;
mod fleet;
mod limits;
mod listen_args;
mod load_context;
mod logging;
mod new_password;
mod output;
mod panics;
mod program;
mod progress;
mod row_args;
mod self_signed;
mod server;
mod simulator;
mod tenant_arg;

/// Counts the memory that each SQL statement allocates, so that statements can be limited.
#[global_allocator]
static ALLOCATOR: query::CountingAllocator = query::CountingAllocator;

fn main() -> std::process::ExitCode {
    cli::run()
}
