//! Long answers go through a pager, as psql's do.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::table::terminal_size;
use crate::cli::output::say;

/// What is used when `PAGER` names nothing: it shows the beginnings of lines that are too long, and goes sideways.
const USUAL: &str = "less -S";
/// What a shell's exit code says when there is no such program.
const NOT_FOUND: i32 = 127;

/// Shows a text: through the pager if it is wanted and the text has more lines than the terminal.
pub(super) fn show(text: &str, paged: bool) -> anyhow::Result<()> {
    let rows = terminal_size().map(|size| size.rows).filter(|_| paged && io::stdin().is_terminal());
    let pager = rows.filter(|rows| text.lines().count() >= usize::from(*rows)).and_then(|_| pager());
    match pager {
        Some(pager) => page(text, &pager),
        None => say(text),
    }
}

/// The command of the pager; none where `PAGER` is set to nothing.
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
        // Who has seen enough leaves before the end: the pipe breaks, and that is fine.
        drop(writeln!(input, "{text}"));
    }
    let ended = running.wait().context("cannot wait for the pager")?;
    match ended.code() {
        Some(NOT_FOUND) => say(text),
        _ => Ok(()),
    }
}
