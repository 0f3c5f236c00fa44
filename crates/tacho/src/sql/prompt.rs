//! The prompt of `tacho sql`.

use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use gateway::answer::Format;
use gateway::statements::{is_complete, statements};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::runtime::Runtime;

use super::complete::Words;
use super::source::Source;
use super::table::{Table, terminal_width};
use super::unless_interrupted;
use crate::cli::output::say;
use crate::limits::HISTORY_LINES_MAX;

const HELP: &str = "\
Statements end with a semicolon and may take several lines.
  \\d          tables
  \\d TABLE    columns of a table
  \\timing     shows the time of queries, or not
  \\q          ends (so does Ctrl-D)
  \\?          this
Ctrl-C ends a running query, or the line that is being written. Tab completes keywords, tables and columns.";

const TABLES: &str =
    "SELECT table_name AS \"table\" FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
const NAMES: &str = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2";

struct Prompt<'a> {
    source: &'a Source,
    runtime: &'a Runtime,
    shows_time: bool,
}

/// What a line asks of the prompt.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Tables,
    Columns(&'a str),
    Timing,
    Quit,
    Help,
    Unknown(&'a str),
}

/// Asks and answers until the user leaves.
pub(super) fn run(source: &Source, runtime: &Runtime) -> anyhow::Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map(|config| config.auto_add_history(false).build());
    let mut editor: Editor<Words, FileHistory> =
        config.and_then(Editor::with_config).context("cannot read from the terminal")?;
    let history = history_file();
    if let Some(history) = &history {
        // There is none before the first time.
        drop(editor.load_history(history));
    }
    let mut prompt = Prompt { source, runtime, shows_time: true };
    say(format_args!(
        "tacho {}: SQL on {}. \\? shows what there is.",
        env!("CARGO_PKG_VERSION"),
        source.name()
    ))?;
    editor.set_helper(Some(prompt.words()));
    let read = prompt.read(&mut editor);
    if let Some(history) = &history {
        keep_history(&mut editor, history);
    }
    read
}

impl Prompt<'_> {
    fn read(&mut self, editor: &mut Editor<Words, FileHistory>) -> anyhow::Result<()> {
        let mut text = String::new();
        loop {
            match editor.readline(if text.is_empty() { "tacho> " } else { "    -> " }) {
                Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                    drop(editor.add_history_entry(&line));
                    if !self.command(&Command::parse(line.trim()))? {
                        return Ok(());
                    }
                }
                Ok(line) => {
                    text.push_str(&line);
                    text.push('\n');
                    if statements(&text).is_empty() {
                        text.clear();
                    } else if is_complete(&text) {
                        // In one line, so that the arrow keys bring it back as a whole.
                        drop(editor.add_history_entry(text.trim().replace('\n', " ")));
                        for one in statements(&std::mem::take(&mut text)) {
                            self.ask(one)?;
                        }
                    }
                }
                Err(ReadlineError::Interrupted) => text.clear(),
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error).context("cannot read from the terminal"),
            }
        }
    }

    /// Returns whether to go on.
    fn command(&mut self, command: &Command<'_>) -> anyhow::Result<bool> {
        match command {
            Command::Tables => self.ask(TABLES)?,
            Command::Columns(table) => {
                let table = table.trim_matches('"').replace('\'', "''");
                self.ask(&format!(
                    "SELECT column_name AS \"column\", data_type AS type, is_nullable AS nullable \
                     FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
                ))?;
            }
            Command::Timing => {
                self.shows_time = !self.shows_time;
                say(if self.shows_time {
                    "the time of queries is shown"
                } else {
                    "the time of queries is not shown"
                })?;
            }
            Command::Quit => return Ok(false),
            Command::Help => say(HELP)?,
            Command::Unknown(what) => say(format_args!("{what} is not there; \\? shows what is"))?,
        }
        Ok(true)
    }

    /// Asks and shows the answer, or what is wrong with the question.
    fn ask(&self, text: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        match self.runtime.block_on(unless_interrupted(self.table(text))) {
            Ok(table) => {
                let footer = table.footer(self.shows_time.then(|| began.elapsed()));
                let width = std::io::stdout().is_terminal().then(terminal_width).flatten();
                say(format_args!("{}{footer}", table.lines(width)))
            }
            Err(error) => say(format_args!("error: {error:#}")),
        }
    }

    async fn table(&self, text: &str) -> anyhow::Result<Table> {
        Table::read(self.source.ask_watched(text, Format::Json).await?).await
    }

    /// Names to complete; none if they cannot be had.
    fn words(&self) -> Words {
        let mut words = Words::default();
        if let Ok(names) = self.runtime.block_on(unless_interrupted(self.table(NAMES))) {
            words.learn(names.texts(0).chain(names.texts(1)));
        }
        words
    }
}

impl<'a> Command<'a> {
    fn parse(line: &'a str) -> Self {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim().trim_end_matches(';')) {
            ("\\d" | "\\dt", "") => Self::Tables,
            ("\\d", table) => Self::Columns(table),
            ("\\timing", _) => Self::Timing,
            ("\\q", _) => Self::Quit,
            ("\\?" | "\\h", _) => Self::Help,
            (other, _) => Self::Unknown(other),
        }
    }
}

/// `$XDG_STATE_HOME/tachograph/sql_history`, by default below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("tachograph/sql_history"))
}

/// Queries may name what others should not read: only the user may. Failing costs the history only.
fn keep_history(editor: &mut Editor<Words, FileHistory>, file: &Path) {
    let kept = file.parent().map(|directory| {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        editor.save_history(file).map_err(std::io::Error::other)
    });
    if let Some(Err(error)) = kept {
        tracing::warn!(file = %file.display(), %error, "the history of queries is not kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_with_a_backslash() {
        assert_eq!(Command::parse("\\d"), Command::Tables);
        assert_eq!(Command::parse("\\d telemetry;"), Command::Columns("telemetry"));
        assert_eq!(Command::parse("\\q"), Command::Quit);
        assert_eq!(Command::parse("\\timing on"), Command::Timing);
        assert_eq!(Command::parse("\\x"), Command::Unknown("\\x"));
    }
}
