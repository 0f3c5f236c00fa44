//! The output of commands: results on standard output, errors on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use gateway::tls::TlsError;

use crate::config::ConfigError;
use crate::program;

/// The command failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong (clap uses the same number).
const USAGE: u8 = 2;

/// Prints a line of a command's result.
pub(crate) fn say(line: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Formats rows of cells as lines of columns, two blanks apart. The columns in `right` are aligned to the right. Lines have
/// no blanks at the end.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]], right: std::ops::Range<usize>) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The reader of a server's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// People: lines as things happen.
    People,
    /// Programs: one JSON line when the server is ready; the lines for people go to standard error.
    Programs,
}

impl Audience {
    /// The audience that `--json` selects.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Programs } else { Self::People }
    }

    /// Prints lines for people. A failure to print does not stop the server.
    pub(crate) fn tell(self, lines: impl Display) {
        match self {
            Self::People => tell(lines),
            // A closed standard error cannot be reported anywhere.
            Self::Programs => drop(writeln!(io::stderr(), "{lines}")),
        }
    }
}

/// Prints a line of a server. A failure to print is logged and does not stop the server.
pub(crate) fn tell(line: impl Display) {
    if let Err(error) = say(line) {
        tracing::warn!(error = %error.root_cause(), "nobody reads standard output");
    }
}

/// Prints an error with its causes and returns the exit code for it.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader has closed the pipe, as in `tacho device list | head`.
        return ExitCode::SUCCESS;
    }
    // A closed standard error cannot be reported anywhere.
    drop(writeln!(io::stderr(), "{}", program::runnable(&text(error))));
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

/// Whether the command line or the configuration caused the error.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<ConfigError>()
        || error.is::<TlsError>()
        || matches!(error.downcast_ref(), Some(bench::Error::Options(_)))
}

/// The error on the first line, its causes below. A cause that the line above contains is left out.
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
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "N", "KEPT"], ["ä", "10", "forever"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows, 1..2), ["NAME   N  KEPT", "ä     10  forever"]);
    }

    #[test]
    fn causes_follow_the_error_unless_it_contains_them() {
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
