//! The `tacho` binary: reads the command line and hands over.

mod cli;
mod client;
mod config;
mod device;
mod fleet;
mod import;
mod simulator;

fn main() -> std::process::ExitCode {
    cli::run()
}
