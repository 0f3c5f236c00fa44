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

/// Rows of cells as lines of columns, two blanks apart; `right` says which columns are numbers. The last column has no blanks
/// behind it.
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

/// A time as it is listed: RFC 3339, in whole seconds.
pub(crate) fn time_text(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{milliseconds} ms"),
    }
}

/// For whom a server says on standard output what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// People: lines as things happen.
    People,
    /// Programs: one line of JSON when the server is ready; the lines for people go to standard error.
    Programs,
}

impl Audience {
    /// What `--json` asks for.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Programs } else { Self::People }
    }

    /// Prints lines for people. A server goes on when nobody reads them.
    pub(crate) fn tell(self, lines: impl Display) {
        match self {
            Self::People => tell(lines),
            // Nobody is left to tell when standard error is gone too.
            Self::Programs => drop(writeln!(io::stderr(), "{lines}")),
        }
    }
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
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "N", "KEPT"], ["ä", "10", "forever"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows, 1..2), ["NAME   N  KEPT", "ä     10  forever"]);
    }

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
