//! The context that the commands get from their program.

use std::path::PathBuf;

/// The context of a command.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The program to start as `<program> serve --data DIR` if no target is given.
    pub server_binary: PathBuf,
    /// The arguments with which the same program runs as a worker: `bench worker`.
    pub worker_arguments: Vec<String>,
    /// The command line of the run, for the result.
    pub command_line: Vec<String>,
    /// The source commit of the program, for the result.
    pub commit: Option<String>,
    /// The path of the program for printed commands; empty if it is called by its name.
    pub program: String,
}

impl Context {
    /// The first word of a printed command.
    pub fn called(&self) -> &str {
        if self.program.is_empty() { NAME } else { &self.program }
    }
}

/// The name of the program as the first word of a command line in a result.
pub const NAME: &str = "tacho";
