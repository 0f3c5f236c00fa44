//! The command line of the load generator without the rest of the platform: quick to build, for work on it and for
//! measurements of other servers. If a run starts a server, it is the program in TACHO_BIN.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use bench::Context;
use bench::command::{BenchCommand, run};
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let context = Context {
        server_binary: std::env::current_exe().unwrap_or_default(),
        worker_arguments: vec!["worker".to_owned()],
        command_line: std::iter::once("bench".to_owned()).chain(std::env::args().skip(1)).collect(),
        commit: None,
        program: String::new(),
    };
    match run(&Line::parse().command, &context, &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Replaces itself by the server, with the same process id.
fn serve() -> ExitCode {
    let Some(server) = std::env::var_os("TACHO_BIN") else {
        eprintln!("error: this program has no server; name one with TACHO_BIN");
        return ExitCode::FAILURE;
    };
    let error = Command::new(&server).args(std::env::args_os().skip(1)).exec();
    eprintln!("error: {}: {error}", server.display());
    ExitCode::FAILURE
}
