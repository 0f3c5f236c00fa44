//! What commands print: results on standard output, errors on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;

use super::program;
use crate::config::ConfigError;

/// The command failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong (clap uses the same number).
const USAGE: u8 = 2;

/// Prints a line of a command's result.
pub(crate) fn say(line: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Prints a line for whoever watches a server. A server goes on when nobody does.
pub(crate) fn tell(line: impl Display) {
    if let Err(error) = say(line) {
        tracing::warn!(error = %error.root_cause(), "nobody reads standard output");
    }
}

/// Prints an error with its causes and returns the exit code for it.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // Whoever read our output has seen enough, as in `tacho device list | head`.
        return ExitCode::SUCCESS;
    }
    // Nobody is left to tell when standard error is gone too.
    drop(writeln!(io::stderr(), "{}", program::runnable(&text(error))));
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

/// Whether the command line or the configuration is to blame.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<ConfigError>() || matches!(error.downcast_ref(), Some(bench::Error::Options(_)))
}

/// The error on the first line, its causes below. A cause that the line above already tells is left out.
fn text(error: &anyhow::Error) -> String {
    let mut text = String::from("tacho: error: ");
    let mut above = String::new();
    for (depth, cause) in error.chain().enumerate() {
        let line = cause.to_string();
        if depth == 0 {
            text.push_str(&line);
        } else if above.contains(&line) {
            continue;
        } else {
            text.push_str("\n  cause: ");
            text.push_str(&line.replace('\n', "\n  "));
        }
        above = line;
    }
    text
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.root_cause().downcast_ref::<io::Error>();
    io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
        && error.to_string().contains("standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_the_error_unless_it_tells_them_already() {
        let io = io::Error::from(io::ErrorKind::PermissionDenied);
        let store = store_like(io);
        let error = anyhow::Error::new(store).context("cannot open the store");
        assert_eq!(
            text(&error),
            "tacho: error: cannot open the store\n  cause: cannot write /x: permission denied"
        );
    }

    fn store_like(source: io::Error) -> ConfigErrorLike {
        ConfigErrorLike { source }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write /x: {source}")]
    struct ConfigErrorLike {
        source: io::Error,
    }
}
