//! `tacho bench list`: the built-in scenarios and those in the files of a directory, one line each, or one with all
//! details.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use load::scenario::{Alias, BUILTIN, Scenario};
use load::{Error, Result};
use serde::Serialize;
use targets::Context;

use super::options_file::{OptionsFile, Run};
use super::output::write_line;

/// The directory of scenario files.
const SCENARIOS: &str = "scenarios";
/// The width of a terminal that does not report it: the smallest usual one.
const LINE_CHARS: usize = 80;

/// Lists scenarios
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench list
  tacho bench list redis get
  tacho bench list redis-get
  tacho bench list my-scenario.toml
  tacho bench list mqtt --json")]
pub struct ListArgs {
    /// A driver or any words of name, alias or description: only scenarios with all of them; the name of one scenario or a file shows all
    /// of it [default: the built-in scenarios, and those of scenarios/*.toml that are others]
    #[arg(value_name = "WORD|FILE")]
    words: Vec<String>,
    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,
}

/// A scenario, or a run of an options file.
#[derive(Debug, Serialize)]
struct Entry {
    /// The name to run it by.
    name: String,
    driver: String,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    article: Option<String>,
    phases: Vec<String>,
    aliases: Vec<&'static str>,
    /// The command that runs it, without the program.
    command: String,
    /// The reason why it cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lists the given files, or the scenarios that match all words.
pub(super) fn run(args: &ListArgs, context: &Context, out: &mut dyn Write) -> Result<()> {
    let is_file = |word: &String| Path::new(word).extension().is_some_and(|it| it == "toml");
    let (files, words): (Vec<&String>, Vec<&String>) = args.words.iter().partition(|word| is_file(word));
    let mut entries = Vec::new();
    for file in &files {
        entries.extend(described(Path::new(file))?);
    }
    if files.is_empty() {
        entries = everything(Path::new(SCENARIOS))?;
    }
    let one = words.iter().find_map(|word| {
        let name = Alias::named(word).map_or(word.as_str(), |alias| alias.scenario);
        entries
            .iter()
            .position(|entry| entry.name == name)
            .filter(|_| words.len() == 1 && !is_driver(word, &entries))
    });
    let is_whole = one.is_some() || !files.is_empty();
    match one {
        Some(index) => entries = vec![entries.swap_remove(index)],
        None => entries.retain(|entry| words.iter().all(|word| entry.has(word))),
    }
    for entry in entries.iter_mut().filter(|entry| !entry.command.is_empty()) {
        entry.command = format!("{} {}", context.called(), entry.command);
    }
    if entries.is_empty() {
        return Err(Error::Options(no_such(&words)));
    }
    if args.json {
        let json =
            serde_json::to_string_pretty(&entries).map_err(|error| Error::Options(error.to_string()))?;
        return write_line(out, &json);
    }
    let text = if is_whole {
        entries.iter().map(Entry::whole).collect::<Vec<_>>().join("\n")
    } else {
        table(&entries, line_chars(), context.called())
    };
    write_line(out, &text)
}

/// The width of the terminal; `None` if the output is not a terminal.
fn line_chars() -> Option<usize> {
    let out = std::io::stdout();
    let columns =
        |size: rustix::termios::Winsize| Some(usize::from(size.ws_col)).filter(|columns| *columns > 0);
    out.is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&out).ok().and_then(columns).unwrap_or(LINE_CHARS))
}

fn is_driver(word: &str, entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.driver == word)
}

fn no_such(words: &[&String]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
    let meant = Scenario::load(&words.concat(), &[]).err().map(|error| error.to_string()).unwrap_or_default();
    match words[..] {
        [_] => meant,
        _ => format!("no scenario has all of these words: {}", words.join(", ")),
    }
}

/// The built-in scenarios and other ones in a directory. An unreadable file does not hide the others.
fn everything(directory: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for builtin in BUILTIN {
        let wrong = |what: String| Error::Scenario { path: PathBuf::from(builtin.name), what };
        entries.push(Entry::of(builtin.name, &builtin.scenario().map_err(wrong)?));
    }
    for file in files(directory).into_iter().filter(|file| !is_builtin(file)) {
        match described(&file) {
            Ok(all) => entries.extend(all),
            Err(error) => entries.push(Entry::unreadable(&file, &error)),
        }
    }
    Ok(entries)
}

impl Entry {
    fn of(name: &str, scenario: &Scenario) -> Self {
        let head = &scenario.head;
        Self {
            name: name.to_owned(),
            driver: head.driver.clone(),
            about: head.about.clone(),
            article: head.article.clone(),
            phases: scenario.phases.iter().map(|phase| phase.name.clone()).collect(),
            aliases: Alias::of(name).map(|alias| alias.name).collect(),
            command: format!("bench run {name}"),
            error: None,
        }
    }

    fn unreadable(file: &Path, error: &Error) -> Self {
        Self {
            name: file.display().to_string(),
            driver: "-".to_owned(),
            about: format!("not readable: {error}"),
            article: None,
            phases: Vec::new(),
            aliases: Vec::new(),
            command: String::new(),
            error: Some(error.to_string()),
        }
    }

    /// Whether the entry has this driver, or contains the word.
    fn has(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let texts = [&self.name, &self.driver, &self.about].into_iter().map(String::as_str);
        texts.chain(self.aliases.iter().copied()).any(|text| text.to_lowercase().contains(&word))
    }

    /// All details.
    fn whole(&self) -> String {
        let mut lines = vec![format!("{} ({})", self.name, self.driver), format!("  {}", self.about)];
        let facts = [
            ("from", self.article.clone().unwrap_or_default()),
            ("phases", self.phases.join(", ")),
            ("also called", self.aliases.join(", ")),
        ];
        lines.extend(
            facts.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("  {name}: {text}")),
        );
        lines.extend(Some(format!("  {}", self.command)).filter(|_| !self.command.is_empty()));
        lines.join("\n")
    }
}

/// One line for each scenario: name, driver and description, cut to `line_chars` characters if given.
fn table(entries: &[Entry], line_chars: Option<usize>, called: &str) -> String {
    let width =
        |text: fn(&Entry) -> &str| entries.iter().map(|entry| text(entry).chars().count()).max().unwrap_or(0);
    let (name_chars, driver_chars) = (width(|entry| &entry.name), width(|entry| &entry.driver));
    let room = line_chars
        .map_or(usize::MAX, |chars| chars.saturating_sub(name_chars + driver_chars + 4).max(LINE_CHARS / 4));
    let line = |entry: &Entry| {
        let (name, driver, about) = (&entry.name, &entry.driver, cut(&entry.about, room));
        format!("{name:<name_chars$}  {driver:<driver_chars$}  {about}")
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    format!(
        "{}\n\nAll of one: {called} bench list NAME. First try: {called} bench run NAME --quick",
        lines.join("\n")
    )
}

/// The first line of a text, cut at a word.
fn cut(text: &str, chars: usize) -> String {
    let text = text.lines().next().unwrap_or_default();
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let short: String = text.chars().take(chars.saturating_sub(3)).collect();
    let end = short.rfind(' ').unwrap_or(short.len());
    format!("{}...", short[..end].trim_end_matches([',', ':', ';']))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

/// Whether a file equals a built-in scenario. A changed copy is another scenario, and is run by its path.
fn is_builtin(file: &Path) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| BUILTIN.iter().any(|builtin| builtin.text == text))
}

/// The entries of a file: a scenario, or the runs of an options file.
fn described(file: &Path) -> Result<Vec<Entry>> {
    let name = file.display().to_string();
    if !OptionsFile::is_one(file)? {
        return Ok(vec![Entry::of(&name, &Scenario::load(&name, &[])?)]);
    }
    let options = OptionsFile::load(file)?;
    let wrong = |what: String| Error::Scenario { path: file.to_owned(), what };
    let entry = |run: &Run| {
        Ok(Entry {
            name: format!("{name} {}", run.name),
            driver: options.scenario.clone(),
            about: run.about.clone(),
            article: None,
            phases: Vec::new(),
            aliases: Vec::new(),
            command: format!("bench run {}", options.command_line(run).map_err(wrong)?.join(" ")),
            error: None,
        })
    };
    options.runs.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::command::FileCommand;

    fn listed(words: &[&str], json: bool) -> std::result::Result<String, String> {
        let mut out = Vec::new();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        run(&ListArgs { words, json }, &Context::default(), &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn ours() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SCENARIOS)
    }

    #[test]
    fn every_scenario_has_a_line_that_fits_a_terminal_or_is_whole_elsewhere() {
        let entries: Vec<Entry> =
            BUILTIN.iter().map(|builtin| Entry::of(builtin.name, &builtin.scenario().unwrap())).collect();
        let whole = table(&entries, None, "tacho");
        assert!(entries.iter().all(|entry| whole.contains(entry.about.lines().next().unwrap())), "{whole}");
        let text = table(&entries, Some(LINE_CHARS), "tacho");
        let (lines, hint) = text.split_once("\n\n").unwrap();
        assert_eq!(lines.lines().count(), BUILTIN.len(), "{text}");
        for (builtin, line) in BUILTIN.iter().zip(lines.lines()) {
            assert!(
                line.starts_with(&format!("{} ", builtin.name)) && line.chars().count() <= LINE_CHARS,
                "{line}"
            );
        }
        assert!(hint.contains("--quick"), "{hint}");
    }

    #[test]
    fn words_choose_and_a_name_shows_all() {
        let names = |words: &[&str]| -> Vec<String> {
            let json: Vec<serde_json::Value> = serde_json::from_str(&listed(words, true).unwrap()).unwrap();
            json.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
        };
        let found = names(&["redis", "GET"]);
        assert!(
            found.contains(&"gemini-str32".to_owned()) && found.iter().all(|name| name.starts_with("gemini")),
            "{found:?}"
        );
        assert!(names(&["mqtt"]).len() >= 4 && names(&["sql"]).len() >= 10);
        assert_eq!(
            (names(&["redis-get"]), names(&["http-steps"])),
            (vec!["gemini-str32".to_owned()], vec!["http-steps".to_owned()])
        );
        let one = listed(&["redis-get"], false).unwrap();
        assert!(
            one.contains("also called: redis, redis-get") && one.contains("tacho bench run gemini-str32\n"),
            "{one}"
        );
        assert!(listed(&["redis-gte"], false).unwrap_err().contains("did you mean `redis-get`?"));
        assert!(
            listed(&["redis", "nonsense"], false)
                .unwrap_err()
                .contains("all of these words: redis, nonsense")
        );
    }

    #[test]
    fn files_of_a_directory_are_listed_but_for_those_that_are_compiled_in() {
        let entries = everything(&ours()).unwrap();
        let has = |name: &str| entries.iter().any(|entry| entry.name.ends_with(name));
        assert!(has("thingsboard-runs.toml saturation") && has("ledger-runs.toml full"));
        let others: Vec<&Entry> = entries.iter().filter(|entry| entry.name.contains(".toml")).collect();
        assert!(others.iter().all(|entry| entry.phases.is_empty() && entry.error.is_none()), "{others:?}");
        assert_eq!(everything(&ours().join("no-such-directory")).unwrap().len(), BUILTIN.len());
    }

    #[test]
    fn a_scenario_of_a_user_is_listed_and_a_wrong_one_with_what_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let builtin = BUILTIN.iter().find(|builtin| builtin.name == "http-qps").unwrap().text;
        write("copy.toml", builtin);
        write("mine.toml", &builtin.replace("name = \"http-qps\"", "name = \"mine\""));
        write("wrong.toml", &builtin.replace("rate = 2_000", "rote = 2_000\nrate = 0"));
        write("broken.toml", "[scenario");
        write(
            "runs.toml",
            "scenario = 'ledger'\n[[run]]\nname = 'a'\nabout = ''\noptions = { kills = [[1]] }",
        );
        write("notes.txt", "none");
        let entries = everything(directory.path()).unwrap();
        let of = |name: &str| {
            let path = directory.path().join(name).display().to_string();
            entries.iter().find(|entry| entry.name == path)
        };
        let mine = of("mine.toml").unwrap();
        assert!(mine.whole().contains(" (http)\n  HTTP requests: keep-alive at a rate"), "{}", mine.whole());
        assert!(mine.command.ends_with("mine.toml"));
        for (name, what) in [
            ("wrong.toml", "phase `connection-each`: an open loop needs a `rate` above zero"),
            ("broken.toml", "TOML parse error"),
            ("runs.toml", "`kills` has a value of type array"),
        ] {
            assert!(of(name).unwrap().error.as_ref().unwrap().contains(what), "{name}");
        }
        assert!(of("copy.toml").is_none() && of("notes.txt").is_none());
        let file = directory.path().join("mine.toml").display().to_string();
        assert!(listed(&[&file], false).unwrap().contains("  phases: warmup, keep-alive"));
    }

    #[test]
    fn every_run_of_the_files_of_options_is_a_command() {
        let files = files(&ours()).into_iter().filter(|path| OptionsFile::is_one(path).unwrap());
        let files: Vec<PathBuf> = files.collect();
        assert!(files.len() >= 2, "{files:?}");
        for path in files {
            let file = OptionsFile::load(&path).unwrap();
            for run in &file.runs {
                let words = file.command_line(run).unwrap();
                FileCommand::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
}
