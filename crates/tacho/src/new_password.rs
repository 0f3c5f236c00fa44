//! Reads a new password: twice at a terminal, otherwise one line of a file or of standard input. It is never an argument,
//! because other users of the machine can see arguments.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use model::limits::PASSWORD_BYTES_MAX;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The source of the new password.
#[derive(Debug, Args)]
pub(crate) struct NewPasswordArgs {
    /// File whose only line is the new password; - is standard input [default: asks twice at the terminal, otherwise reads
    /// standard input]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl NewPasswordArgs {
    /// Asks for the password or reads it.
    pub(crate) fn ask(&self, login: &str) -> anyhow::Result<String> {
        match self.password_file.as_deref() {
            Some(path) if path != Path::new("-") => {
                let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                only_line(file, &path.display().to_string())
            }
            None if io::stdin().is_terminal() => at_terminal(login),
            _ => only_line(io::stdin(), "standard input"),
        }
    }
}

/// The only line of a text, without its line end.
fn only_line(text: impl Read, whence: &str) -> anyhow::Result<String> {
    // The longest password, the end of its line, and a byte that shows that there is more.
    let bound = PASSWORD_BYTES_MAX as u64 + 3;
    let mut line = String::new();
    let read = BufReader::new(text).take(bound).read_to_string(&mut line);
    read.with_context(|| format!("cannot read the new password from {whence}"))?;
    let password = line.strip_suffix('\n').unwrap_or(&line);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.contains(['\n', '\r']) {
        bail!("{whence} holds more than one line; the new password is to be the only one");
    }
    if password.is_empty() {
        bail!("{whence} holds no password; write it into the first line");
    }
    Ok(password.to_owned())
}

fn at_terminal(login: &str) -> anyhow::Result<String> {
    let first = hidden(&format!("New password of {login}: "))?;
    if first != hidden("The same again: ")? {
        bail!("the two passwords differ; nothing was changed, try again");
    }
    Ok(first)
}

/// Reads a line from the terminal without showing it.
fn hidden(prompt: &str) -> anyhow::Result<String> {
    let mut err = io::stderr();
    let mut line = String::new();
    let read = {
        // The terminal hides keys before the prompt appears, so that early keys are hidden too.
        let _hidden = Hidden::begin()?;
        write!(err, "{prompt}").and_then(|()| err.flush()).context("cannot ask for the password")?;
        io::stdin().lock().read_line(&mut line)
    };
    // The end of the line was not shown either.
    writeln!(err).context("cannot write to standard error")?;
    if read.context("cannot read the password")? == 0 {
        bail!("no password was typed; nothing was changed");
    }
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// The terminal does not show typed keys until this is dropped.
struct Hidden {
    before: Termios,
}

impl Hidden {
    /// Fails if the terminal cannot hide typed keys.
    fn begin() -> anyhow::Result<Self> {
        let input = io::stdin();
        let before = tcgetattr(&input).context("cannot ask the terminal how it is set")?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&input, OptionalActions::Flush, &hidden)
            .context("cannot keep the terminal from showing the password; use --password-file")?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // If the terminal cannot be restored, the command has no other remedy.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_only_line() {
        for text in ["pass word", "pass word\n", "pass word\r\n"] {
            assert_eq!(only_line(text.as_bytes(), "it").unwrap(), "pass word");
        }
        for (text, part) in [("", "no password"), ("\n", "no password"), ("a\nb", "more than one line")] {
            let error = only_line(text.as_bytes(), "it").unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        let long = "x".repeat(PASSWORD_BYTES_MAX * 2);
        assert!(
            only_line(long.as_bytes(), "it").unwrap().len() > PASSWORD_BYTES_MAX,
            "refused by its length"
        );
    }
}
