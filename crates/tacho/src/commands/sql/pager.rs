//! Shows long answers in a pager, as psql does.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::terminal::terminal_size;
use crate::output::say;

/// The pager without `PAGER`. It cuts long lines and scrolls sideways.
const USUAL: &str = "less -S";
/// The exit code of a shell that does not find the program.
const NOT_FOUND: i32 = 127;

/// Shows a text, in the pager if `paged` is set and the text has more lines than the terminal.
pub(super) fn show(text: &str, paged: bool) -> anyhow::Result<()> {
    let rows = terminal_size().map(|size| size.rows).filter(|_| paged && io::stdin().is_terminal());
    let pager = rows.filter(|rows| text.lines().count() >= usize::from(*rows)).and_then(|_| pager());
    match pager {
        Some(pager) => page(text, &pager),
        None => say(text),
    }
}

/// The command of the pager; `None` if `PAGER` is empty.
fn pager() -> Option<String> {
    let named = std::env::var("PAGER").unwrap_or_else(|_| USUAL.to_owned());
    (!named.trim().is_empty()).then_some(named)
}

fn page(text: &str, pager: &str) -> anyhow::Result<()> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESSCHARSET").is_none() {
        command.env("LESSCHARSET", "utf-8");
    }
    let started = command.spawn();
    let mut running = started
        .with_context(|| format!("cannot start the pager {pager:?}; `\\pset pager off` does without"))?;
    if let Some(mut input) = running.stdin.take() {
        // A user who leaves the pager early breaks the pipe. That is not an error.
        drop(writeln!(input, "{text}"));
    }
    let ended = running.wait().context("cannot wait for the pager")?;
    match ended.code() {
        Some(NOT_FOUND) => say(text),
        _ => Ok(()),
    }
}
