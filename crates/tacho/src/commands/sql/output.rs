//! Writes answers to standard output or a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use futures_util::StreamExt;

use super::form::Form;
use super::pager;
use super::source::Source;
use super::table::{Expanded, Table};
use super::terminal::terminal_size;

/// Writes the answers of one command.
pub(super) struct Output {
    form: Form,
    to: Box<dyn Write>,
    /// The file of `--out`. It is removed if the answer fails.
    file: Option<(PathBuf, File)>,
    /// The layout of a table.
    expanded: Expanded,
    paged: bool,
}

impl Output {
    pub(super) fn open(
        path: Option<&Path>,
        form: Form,
        expanded: Expanded,
        paged: bool,
    ) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self { form, to: Box::new(io::stdout()), file: None, expanded, paged });
        };
        let file = File::create_new(path);
        let file = file.with_context(|| {
            format!("cannot create {}; name a file that is not there yet", path.display())
        })?;
        let to = file.try_clone().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            form,
            to: Box::new(io::BufWriter::new(to)),
            file: Some((path.into(), file)),
            expanded,
            paged: false,
        })
    }

    /// Asks and writes the answer.
    pub(super) async fn answer(&mut self, source: &Source, text: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let answered = self.write(source, text, began).await;
        if answered.is_err()
            && let Some((path, _)) = &self.file
        {
            // An incomplete file must not look like a complete answer.
            drop(std::fs::remove_file(path));
        }
        answered
    }

    async fn write(&mut self, source: &Source, text: &str, began: Instant) -> anyhow::Result<()> {
        // Rows that go to a terminal or a pipe show the progress themselves; a table is shown when it is complete.
        let is_quiet_meanwhile = self.file.is_some() || self.form == Form::Table;
        let mut answer = match is_quiet_meanwhile {
            true => source.ask_watched(text, self.form.format()).await?,
            false => source.ask(text, self.form.format()).await?,
        };
        match self.form {
            Form::Table => {
                let table = Table::read(answer).await?;
                let footer = table.footer(Some(began.elapsed()));
                if self.file.is_some() {
                    return self.say(format!("{}{footer}\n", table.shown(self.expanded, None)).as_bytes());
                }
                let width = terminal_size().map(|size| size.columns);
                pager::show(&format!("{}{footer}", table.shown(self.expanded, width)), self.paged)
            }
            Form::Json => {
                // The end says whether the answer is complete. Only the end is kept in memory.
                let mut end = Vec::new();
                while let Some(piece) = answer.next().await {
                    let piece = piece?;
                    self.say(&piece)?;
                    end.extend_from_slice(&piece);
                    let surplus = end.len().saturating_sub(END_BYTES);
                    end.drain(..surplus);
                }
                failed_at_the_end(&end)
            }
            _ => {
                while let Some(piece) = answer.next().await {
                    self.say(&piece?)?;
                }
                Ok(())
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.to.write_all(bytes).with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        match &self.file {
            Some((path, _)) => format!("cannot write {}", path.display()),
            None => "cannot write to standard output".into(),
        }
    }

    /// Flushes and syncs the output.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        let flushed = self.to.flush().with_context(|| self.cannot_write());
        let synced = match &self.file {
            Some((_, file)) => file.sync_all().with_context(|| self.cannot_write()),
            None => Ok(()),
        };
        flushed.and(synced)
    }
}

/// Upper bound of an error at the end of JSON.
const END_BYTES: usize = 64 * 1024;

/// Reads the error at the end of an answer in JSON that failed halfway.
fn failed_at_the_end(end: &[u8]) -> anyhow::Result<()> {
    let end = String::from_utf8_lossy(end);
    // No row contains this text, because quotes in rows are escaped.
    let Some((_, error)) = end.rsplit_once("\n],\"error\":") else { return Ok(()) };
    let error = error.trim_end().strip_suffix('}').unwrap_or(error);
    let message = serde_json::from_str::<serde_json::Value>(error).ok();
    let message =
        message.as_ref().and_then(|error| error["message"].as_str()).unwrap_or("the answer is not whole");
    bail!("{message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_at_the_end_of_json_is_an_error() {
        failed_at_the_end(b"\"rows\":[\n[\"\\n],\\\"error\\\":\"]\n],\"row_count\":1}\n").unwrap();
        let end = b"\"rows\":[\n[1]\n],\"error\":{\"status\":422,\"message\":\"too slow\"}}\n";
        assert_eq!(failed_at_the_end(end).unwrap_err().to_string(), "too slow");
    }
}
