//! The options of commands that drop data, and the question before they do.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::Args;

/// How a command drops data.
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Only shows what would be dropped
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Drops the data without asking
    #[arg(long)]
    pub yes: bool,
    /// Prints the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows what would be dropped and asks on the terminal; an error unless the answer is yes.
pub(crate) fn confirm(loss: &str) -> anyhow::Result<()> {
    // The result on standard output does not include the question.
    writeln!(io::stderr(), "{loss}").context("cannot write to standard error")?;
    if !io::stdin().is_terminal() {
        bail!("nothing was changed: there is no terminal to ask at; give --yes, or look with --dry-run");
    }
    write!(io::stderr(), "Drop them? [y/N] ").context("cannot write to standard error")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
