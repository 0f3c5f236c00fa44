//! The commands for bundles: `compare`, `report`, `import`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use load::result::Bundle;
use load::{Error, Result};

use crate::compare::{Comparison, compare};
use crate::import::{Format, import};
use crate::report::html::{LabelledBundle, SeriesAnswer, page};

/// Work on results
#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Compares results of one scenario phase by phase: what differs in how they were run, ratios, verdict
    Compare(CompareArgs),
    /// Shows results as text, and several in one HTML page
    Report(ReportArgs),
    /// Reads the output of sysbench, memtier, wrk, wrk2 or fio into a result, with what it hides
    Import(ImportArgs),
}

/// Which results
#[derive(Debug, Args)]
#[command(after_help = "\
A directory that holds results stands for all of them. Phases are compared by name, each by itself, and so are the classes
of operation of a phase that has several.

Examples:
  tacho bench compare results/first results/second
  tacho bench compare --a before/1 --a before/2 --b after/1 --b after/2
  tacho bench compare before after")]
pub struct CompareArgs {
    /// A and B; more than two are each compared with the first
    #[arg(required_unless_present = "a", num_args = 2.., conflicts_with_all = ["a", "b"])]
    directories: Vec<PathBuf>,
    /// A result of the side compared with; may be given several times
    #[arg(long, requires = "b")]
    a: Vec<PathBuf>,
    /// A result of the side in question; may be given several times
    #[arg(long, requires = "a")]
    b: Vec<PathBuf>,
    /// One JSON document instead of tables: a list of comparisons
    #[arg(long)]
    json: bool,
}

/// The data to show
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench report results/first
  tacho bench report results/first results/second --html comparison.html
  tacho bench report before=results/1 after=results/2 --html comparison.html")]
pub struct ReportArgs {
    /// Results, each with a label if wanted: LABEL=DIRECTORY
    #[arg(required = true, value_name = "[LABEL=]DIRECTORY")]
    directories: Vec<String>,
    /// Writes one self-contained page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON document instead of text: a list of results with their labels
    #[arg(long)]
    json: bool,
}

/// The data to read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench import sysbench.txt --out results/sysbench --name sysbench-oltp-read-write
  tacho bench import memtier.json --out results/memtier")]
pub struct ImportArgs {
    /// The tool's output
    file: PathBuf,
    /// Directory of the result; it must not exist
    #[arg(long)]
    out: PathBuf,
    /// The tool [default: recognised by its output]
    #[arg(long)]
    format: Option<Format>,
    /// Name of the scenario that it stands for, so that it can be compared with a run of it
    #[arg(long)]
    name: Option<String>,
}

/// The files with the answer of a series of runs.
const ANSWERS: [&str; 2] = ["ab.json", "capacity.json"];

/// The number of runs of a series that a page shows, the newest ones. The page has a colour for each.
const SHOWN_OF_SERIES: usize = 6;

/// Runs a command and writes its output to `out`.
pub fn run(command: &BundleCommand, out: &mut dyn Write) -> Result<()> {
    let text = match command {
        BundleCommand::Compare(args) => compared(args)?,
        BundleCommand::Report(args) => reported(args)?,
        BundleCommand::Import(args) => imported(args)?,
    };
    writeln!(out, "{}", text.trim_end()).map_err(Error::io("the output could not be written"))
}

fn compared(args: &CompareArgs) -> Result<String> {
    let both = |a: &[Bundle], b: &[Bundle]| compare(a, b).map_err(|error| Error::Options(error.to_string()));
    let mut all = Vec::new();
    if !args.a.is_empty() {
        all.push((String::new(), both(&read_all(&args.a)?, &read_all(&args.b)?)?));
    }
    if let Some((first, others)) = args.directories.split_first() {
        let first = read_all(std::slice::from_ref(first))?;
        for other in others {
            let heading =
                if others.len() > 1 { format!("B is {}\n", other.display()) } else { String::new() };
            all.push((heading, both(&first, &read_all(std::slice::from_ref(other))?)?));
        }
    }
    if args.json {
        let comparisons: Vec<&Comparison> = all.iter().map(|(_, comparison)| comparison).collect();
        return json(&comparisons);
    }
    let texts: Vec<String> =
        all.iter().map(|(heading, comparison)| format!("{heading}{comparison}")).collect();
    Ok(texts.join("\n"))
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::Options(error.to_string()))
}

fn reported(args: &ReportArgs) -> Result<String> {
    let mut runs = Vec::new();
    let mut answers = Vec::new();
    for (side, word) in args.directories.iter().enumerate() {
        // A directory may have `=` in its name.
        let (label, directory) = match word.split_once('=') {
            Some((label, rest)) if !Path::new(word).exists() => (Some(label), Path::new(rest)),
            _ => (None, Path::new(word.as_str())),
        };
        // Only the last name is shown: the path of results is private.
        let own = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = label.map_or_else(|| own.unwrap_or_default(), str::to_owned);
        let answer = answer_in(directory)?;
        let paths = bundles_in(directory)?;
        let skipped = if answer.is_some() { paths.len().saturating_sub(SHOWN_OF_SERIES) } else { 0 };
        answers.extend(answer.map(|answer| SeriesAnswer { label: name, answer }));
        for path in paths.into_iter().skip(skipped) {
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let label = match label {
                Some(label) if path == directory => label.to_owned(),
                Some(label) => format!("{label} {own}"),
                None => own,
            };
            runs.push(LabelledBundle { label, side, bundle: read(&path)? });
        }
    }
    let mut text: String = runs.iter().map(|run| format!("{}: {}\n\n", run.label, run.bundle)).collect();
    if let Some(file) = &args.html {
        fs::write(file, page(&runs, &answers)).map_err(Error::file(file))?;
    }
    if args.json {
        let results =
            runs.iter().map(|run| serde_json::json!({"label": run.label, "result": run.bundle.result}));
        return json(&results.collect::<Vec<_>>());
    }
    if let Some(file) = &args.html {
        text += &format!("page: {}", file.display());
    }
    Ok(text)
}

fn imported(args: &ImportArgs) -> Result<String> {
    let text = fs::read_to_string(&args.file).map_err(Error::file(&args.file))?;
    let bundle = import(&text, args.format, args.name.as_deref())
        .map_err(|error| Error::Options(format!("{}: {error}", args.file.display())))?;
    bundle
        .write_or_rescue(&args.out, &mut std::io::stderr())
        .map_err(|error| Error::Options(error.to_string()))?;
    Ok(format!("{bundle}\nresult: {}", args.out.display()))
}

fn read_all(directories: &[PathBuf]) -> Result<Vec<Bundle>> {
    let mut bundles = Vec::new();
    for directory in directories {
        for path in bundles_in(directory)? {
            bundles.push(read(&path)?);
        }
    }
    Ok(bundles)
}

fn read(directory: &Path) -> Result<Bundle> {
    Bundle::read(directory).map_err(|error| Error::Options(error.to_string()))
}

/// The answer of `ab` or `capacity` in a directory.
fn answer_in(directory: &Path) -> Result<Option<serde_json::Value>> {
    let Some(path) = ANSWERS.map(|name| directory.join(name)).into_iter().find(|path| path.is_file()) else {
        return Ok(None);
    };
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let wrong = |error| Error::Options(format!("{}: {error}", path.display()));
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

/// The directory itself if it is a bundle, else the bundles in it, by name.
fn bundles_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let is_bundle = |path: &Path| path.join("result.json").is_file();
    if is_bundle(directory) {
        return Ok(vec![directory.to_owned()]);
    }
    let entries = fs::read_dir(directory).map_err(Error::file(directory))?;
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_bundle(path)).collect();
    found.sort();
    if found.is_empty() {
        let what = "neither a result nor a directory of results; a result is what `run --out` or `import --out` wrote";
        return Err(Error::Options(format!("{}: {what}", directory.display())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use load::result::example::{example, example_with};

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: BundleCommand,
    }

    fn say(words: &[&str]) -> Result<String> {
        let line = Line::try_parse_from(std::iter::once(&"bench").chain(words))
            .map_err(|error| Error::Options(error.to_string()))?;
        let mut out = Vec::new();
        run(&line.command, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn bundles_are_compared_reported_and_imported_by_command() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        example().write(Path::new(&path("before/1"))).unwrap();
        example_with(8, &[180]).write(Path::new(&path("before/2"))).unwrap();
        example_with(9, &[900]).write(Path::new(&path("after"))).unwrap();
        let text = say(&["compare", &path("before/1"), &path("after")]).unwrap();
        assert!(text.contains("completed/s") && text.contains("differs     seed: 7 -> 9"), "{text}");
        let text =
            say(&["compare", "--a", &path("before"), "--b", &path("after"), "--b", &path("after")]).unwrap();
        assert!(text.contains("2 run(s) of A, 2 of B"), "{text}");
        let json = say(&["compare", &path("before"), &path("after"), "--json"]).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["figures"][0]["verdict"], "cannot_tell", "{json}");
        let json = say(&["report", &path("after"), "--json"]).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json[0]["label"], &json[0]["result"]["valid"]),
            (&"after".into(), &true.into()),
            "{json}"
        );
        let html = path("page.html");
        let text =
            say(&["report", &format!("old={}", path("before/1")), &path("after"), "--html", &html]).unwrap();
        assert!(
            text.contains("old: VALID example")
                && fs::read_to_string(&html).unwrap().contains("\"label\":\"old\"")
        );
        fs::write(path("wrk.txt"), include_str!("import/fixtures/wrk.txt")).unwrap();
        let text = say(&["import", &path("wrk.txt"), "--out", &path("wrk"), "--name", "example"]).unwrap();
        assert!(text.contains("measured by wrk") && text.contains("not shown"), "{text}");
        assert!(say(&["compare", &path("before/1"), &path("wrk")]).unwrap().contains("completed/s"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let home = tempfile::tempdir().unwrap();
        let empty = home.path().to_str().unwrap();
        let error = say(&["report", empty]).unwrap_err().to_string();
        assert!(error.contains("neither a result nor a directory of results"), "{error}");
        assert!(say(&["compare", empty]).unwrap_err().to_string().contains("2 values required"));
    }
}
