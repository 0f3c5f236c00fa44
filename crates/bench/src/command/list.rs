//! `tacho bench list`: the scenarios that are compiled in, and what the files of a directory hold.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::options_file::OptionsFile;
use super::{say, words};
use crate::error::{Error, Result};
use crate::scenario::{BUILTIN, Scenario};

/// Where files are looked for.
const SCENARIOS: &str = "scenarios";

/// Lists scenarios
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Files [default: the built-in scenarios, and those of scenarios/*.toml that are others, if there is such a directory]
    files: Vec<PathBuf>,
}

/// Lists the files that are named, or the built-in scenarios and the directory's.
pub(super) fn run(args: &ListArgs, out: &mut dyn Write) -> Result<()> {
    if !args.files.is_empty() {
        return args.files.iter().try_for_each(|file| say(out, &described(file)?));
    }
    for builtin in BUILTIN {
        let wrong = |what: String| Error::Scenario { path: PathBuf::from(builtin.name), what };
        say(out, &scenario_lines(builtin.name, &builtin.scenario().map_err(wrong)?))?;
    }
    list_directory(Path::new(SCENARIOS), out)
}

/// The files of a directory that are not those of built-in scenarios; none where there is no directory. A file that cannot be read
/// hides none of the others.
fn list_directory(directory: &Path, out: &mut dyn Write) -> Result<()> {
    for file in files(directory).into_iter().filter(|file| !is_builtin(file)) {
        let lines =
            described(&file).unwrap_or_else(|error| format!("{} (not readable)\n  {error}", file.display()));
        say(out, &lines)?;
    }
    Ok(())
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

/// Whether a file is the one that was compiled in. A changed copy is another scenario, and is run by its path.
fn is_builtin(file: &Path) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| BUILTIN.iter().any(|builtin| builtin.text == text))
}

/// What a file holds: a scenario, or runs of a load with options of its own.
fn described(file: &Path) -> Result<String> {
    if OptionsFile::is_one(file)? {
        return options_lines(file);
    }
    let name = file.display().to_string();
    Ok(scenario_lines(&name, &Scenario::load(&name, &[])?))
}

fn scenario_lines(name: &str, scenario: &Scenario) -> String {
    let head = &scenario.head;
    let phases: Vec<&str> = scenario.phases.iter().map(|phase| phase.name.as_str()).collect();
    let article = head.article.as_ref().map(|article| format!("  from: {article}\n")).unwrap_or_default();
    let named = if name == head.name { name.to_owned() } else { format!("{name} {}", head.name) };
    format!(
        "{named} ({})\n  {}\n{article}  phases: {}\n  tacho bench run {name}",
        head.driver,
        head.about,
        phases.join(", ")
    )
}

fn options_lines(path: &Path) -> Result<String> {
    let file = OptionsFile::load(path)?;
    let mut lines = Vec::new();
    for run in &file.runs {
        let wrong = |what: String| Error::Scenario { path: path.to_owned(), what };
        let words = words(&file, run).map_err(wrong)?.join(" ");
        lines.push(format!("{} {}\n  {}\n  tacho bench run {words}", path.display(), run.name, run.about));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::command::FileCommand;

    fn listed(directory: &Path) -> String {
        let mut out = Vec::new();
        list_directory(directory, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn ours() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SCENARIOS)
    }

    #[test]
    fn every_scenario_is_listed() {
        let mut out = Vec::new();
        run(&ListArgs { files: Vec::new() }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for builtin in BUILTIN {
            assert!(text.contains(&format!("tacho bench run {}\n", builtin.name)), "{text}");
        }
    }

    #[test]
    fn files_of_a_directory_are_listed_but_for_those_that_are_compiled_in() {
        let text = listed(&ours());
        assert!(
            text.contains("thingsboard-runs.toml saturation") && text.contains("ledger-runs.toml full"),
            "{text}"
        );
        assert!(
            !text.contains("phases: ") && !text.contains("not readable"),
            "all others are compiled in: {text}"
        );
        assert_eq!(listed(&ours().join("no-such-directory")), "");
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
        write("runs.toml", "scenario = 'ledger'\n[[run]]\nname = 'a'\nabout = ''\noptions = { kills = [1] }");
        write("notes.txt", "none");
        let text = listed(directory.path());
        let path = |name: &str| directory.path().join(name).display().to_string();
        let mine = format!("{} mine (http)\n  HTTP requests: keep-alive at a rate", path("mine.toml"));
        assert!(text.contains(&mine), "{text}");
        assert!(text.contains(&format!("\n  tacho bench run {}\n", path("mine.toml"))), "{text}");
        for (name, what) in [
            ("wrong.toml", "phase `connection-each`: an open loop needs a `rate` above zero"),
            ("broken.toml", "TOML parse error"),
            ("runs.toml", "`kills` is a array"),
        ] {
            let (_, after) = text.split_once(&format!("{} (not readable)\n", path(name))).unwrap();
            assert!(after.contains(what), "{name}: {after}");
        }
        assert!(!text.contains("copy.toml") && !text.contains("notes"), "{text}");
    }

    #[test]
    fn every_run_of_the_files_of_options_is_a_command() {
        let files = files(&ours()).into_iter().filter(|path| OptionsFile::is_one(path).unwrap());
        let files: Vec<PathBuf> = files.collect();
        assert!(files.len() >= 2, "{files:?}");
        for path in files {
            let file = OptionsFile::load(&path).unwrap();
            for run in &file.runs {
                let words = words(&file, run).unwrap();
                FileCommand::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
}
