//! The prompt of `tacho sql`.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;
use gateway::answer::Format;
use gateway::statements::{is_complete, statements};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::runtime::Runtime;

use super::completion::Words;
use super::interrupt::unless_interrupted;
use super::pager;
use super::source::Source;
use super::table::{Expanded, Table};
use super::terminal::terminal_size;
use super::typed_ahead::TypedAhead;
use crate::limits::HISTORY_LINES_MAX;
use crate::output::say;

const HELP: &str = "\
Statements end with a semicolon and may take several lines.
  \\d                tables
  \\d TABLE          columns of a table
  \\x [on|off|auto]  rows one below the other, or as a table; auto, as at the start:
                    one below the other when the table is wider than the terminal
  \\pset pager off   long answers without a pager ($PAGER, or less -S); on: with it
  \\timing           shows the time of queries, or not
  \\q                ends (so does Ctrl-D)
  \\?                this
Ctrl-C ends a running query, or the line that is being written. What is typed while
a query runs is kept. Tab completes keywords, tables and columns.";

const TABLES: &str =
    "SELECT table_name AS \"table\" FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
const NAMES: &str = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2";

struct Prompt<'a> {
    source: &'a Source,
    runtime: &'a Runtime,
    shows_time: bool,
    expanded: Expanded,
    paged: bool,
}

/// A command of the prompt, such as `\\d`.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Tables,
    Columns(&'a str),
    Timing,
    Expanded(&'a str),
    Pager(&'a str),
    Quit,
    Help,
    Unknown(&'a str),
}

/// Reads statements and shows their answers until the user leaves.
pub(super) fn run(source: &Source, runtime: &Runtime, expanded: Expanded, paged: bool) -> anyhow::Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map(|config| config.auto_add_history(false).build());
    let mut editor: Editor<Words, FileHistory> =
        config.and_then(Editor::with_config).context("cannot read from the terminal")?;
    let history = history_file();
    if let Some(history) = &history {
        // The file does not exist before the first use.
        drop(editor.load_history(history));
    }
    let mut prompt = Prompt { source, runtime, shows_time: true, expanded, paged };
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

    /// Runs a command of the prompt. Returns whether the prompt continues.
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
            Command::Expanded(when) => {
                let chosen = expanded(when, self.expanded);
                self.expanded = chosen.unwrap_or(self.expanded);
                say(match chosen {
                    Some(Expanded::On) => "rows are shown one below the other".to_owned(),
                    Some(Expanded::Off) => "rows are shown as a table".to_owned(),
                    Some(Expanded::Auto) => "rows that do not fit are shown one below the other".to_owned(),
                    None => format!("\\x takes on, off or auto, not {when:?}"),
                })?;
            }
            Command::Pager(when) => {
                let chosen = switched(when, self.paged);
                self.paged = chosen.unwrap_or(self.paged);
                say(match chosen {
                    Some(true) => "long answers go through a pager".to_owned(),
                    Some(false) => "long answers do not go through a pager".to_owned(),
                    None => format!("\\pset pager takes on or off, not {when:?}"),
                })?;
            }
            Command::Quit => return Ok(false),
            Command::Help => say(HELP)?,
            Command::Unknown(what) => say(format_args!("{what} is not there; \\? shows what is"))?,
        }
        Ok(true)
    }

    /// Runs a statement and shows its answer or its error.
    fn ask(&self, text: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let answered = {
            let _typed_ahead = TypedAhead::keep();
            self.runtime.block_on(unless_interrupted(self.table(text)))
        };
        match answered {
            Ok(table) => {
                let footer = table.footer(self.shows_time.then(|| began.elapsed()));
                let width = terminal_size().map(|size| size.columns);
                pager::show(&format!("{}{footer}", table.shown(self.expanded, width)), self.paged)
            }
            Err(error) => say(format_args!("error: {error:#}")),
        }
    }

    async fn table(&self, text: &str) -> anyhow::Result<Table> {
        Table::read(self.source.ask_watched(text, Format::Json).await?).await
    }

    /// The names of tables and columns for completion; none if the query for them fails.
    fn words(&self) -> Words {
        let mut words = Words::default();
        let _typed_ahead = TypedAhead::keep();
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
            ("\\x", when) => Self::Expanded(when),
            ("\\pset", what) => match what.split_once(char::is_whitespace).unwrap_or((what, "")) {
                ("pager", when) => Self::Pager(when.trim()),
                ("x" | "expanded", when) => Self::Expanded(when.trim()),
                _ => Self::Unknown(line),
            },
            ("\\q", _) => Self::Quit,
            ("\\?" | "\\h", _) => Self::Help,
            (other, _) => Self::Unknown(other),
        }
    }
}

/// The setting that `\x` with that word selects; without a word it toggles.
fn expanded(when: &str, now: Expanded) -> Option<Expanded> {
    match (when, now) {
        ("", Expanded::On) => Some(Expanded::Off),
        ("", _) => Some(Expanded::On),
        (when, _) => Expanded::from_str(when, true).ok(),
    }
}

/// The same for a setting that is on or off.
fn switched(when: &str, now: bool) -> Option<bool> {
    match when {
        "" => Some(!now),
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// `$XDG_STATE_HOME/tachograph/sql_history`, by default below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("tachograph/sql_history"))
}

/// Saves the history of queries, readable by the user only. A failure is logged.
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
        assert_eq!(Command::parse("\\x auto;"), Command::Expanded("auto"));
        assert_eq!(Command::parse("\\pset pager off"), Command::Pager("off"));
        assert_eq!(Command::parse("\\pset expanded"), Command::Expanded(""));
        assert_eq!(Command::parse("\\pset null x"), Command::Unknown("\\pset null x"));
        assert_eq!(Command::parse("\\copy"), Command::Unknown("\\copy"));
    }

    #[test]
    fn settings_without_a_value_are_toggled() {
        let both = [expanded("", Expanded::Auto), expanded("", Expanded::On)];
        assert_eq!(both, [Some(Expanded::On), Some(Expanded::Off)]);
        assert_eq!(expanded("AUTO", Expanded::On), Some(Expanded::Auto));
        assert_eq!(expanded("maybe", Expanded::On), None);
        assert_eq!(
            [switched("", true), switched("on", true), switched("?", true)],
            [Some(false), Some(true), None]
        );
    }
}
