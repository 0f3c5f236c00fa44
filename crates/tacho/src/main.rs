//! The `tacho` binary: reads the command line and hands over.

mod bench_command;
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
mod serve;
mod server;
mod simulator;

fn main() -> std::process::ExitCode {
    cli::run()
}
