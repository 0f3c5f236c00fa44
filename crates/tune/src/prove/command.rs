//! Commands of the user.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Runs a command in a shell. What it prints goes to standard error, because standard output has the report.
pub(super) fn run(command: &str) -> Result<(), String> {
    let failed = |reason: String| format!("the command `{command}` {reason}");
    let mut shell = Command::new("/bin/sh");
    // In a group of its own, so that Ctrl-C ends the proof in order and not a server that the command starts.
    shell.process_group(0);
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(std::io::stderr());
    let status = shell.status().map_err(|error| failed(format!("could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("has failed: {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named() {
        run("true").unwrap();
        let error = run("exit 3").unwrap_err();
        assert!(error.contains("`exit 3`") && error.contains('3'), "{error}");
    }
}
