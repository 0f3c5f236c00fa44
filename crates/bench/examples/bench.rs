//! The command line of the load generator without the rest of the platform: quick to build, for work on it and for
//! measurements against other servers.

use std::process::ExitCode;

use bench::Context;
use bench::command::{BenchCommand, run};
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

fn main() -> ExitCode {
    let context = Context {
        server_binary: std::env::current_exe().unwrap_or_default(),
        worker_arguments: vec!["worker".to_owned()],
        command_line: std::iter::once("bench".to_owned()).chain(std::env::args().skip(1)).collect(),
        commit: None,
    };
    match run(&Line::parse().command, &context, &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
