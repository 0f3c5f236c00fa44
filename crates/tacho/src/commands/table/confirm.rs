//! The question before a command drops data.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, bail};

/// Asks on the terminal before something is dropped for good; an error unless the answer is yes.
pub(super) fn confirm(question: &str) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() {
        bail!("nothing was changed: there is no terminal to ask at; give --yes, or look with --dry-run");
    }
    write!(io::stderr(), "{question} [y/N] ").context("cannot write to standard error")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
