//! Options files: named runs of the loads with their own options. A file is converted into a command line, so that each
//! option is defined and checked once.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use load::{Error, Result};

/// A file of `scenarios/`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionsFile {
    /// The command for the options, such as `thingsboard`.
    pub(super) scenario: String,
    /// The runs, in order.
    #[serde(rename = "run")]
    pub(super) runs: Vec<Run>,
}

/// One named run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// The name within the file.
    pub(super) name: String,
    /// The question that the run answers.
    pub(super) about: String,
    options: toml::Table,
}

impl OptionsFile {
    /// Reads a file.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        let wrong = |what: String| Error::Scenario { path: path.to_owned(), what };
        let scenario: Self = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        for run in &scenario.runs {
            run.arguments().map_err(wrong)?;
        }
        Ok(scenario)
    }

    /// Whether a file is an options file and not a scenario.
    pub(super) fn is_one(path: &Path) -> Result<bool> {
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        Ok(toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("run")))
    }

    /// The name of the command and the options of a run, as they are on a command line.
    pub(super) fn command_line(&self, run: &Run) -> std::result::Result<Vec<String>, String> {
        Ok(std::iter::once(self.scenario.clone()).chain(run.arguments()?).collect())
    }

    /// A run by its name. The error lists the known names.
    pub(super) fn run(&self, name: &str) -> std::result::Result<&Run, String> {
        self.runs.iter().find(|run| run.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
            format!("there is no run `{name}` in scenario {}; there are {}", self.scenario, names.join(", "))
        })
    }
}

impl Run {
    /// The options as arguments.
    pub(super) fn arguments(&self) -> std::result::Result<Vec<String>, String> {
        arguments(&self.options).map_err(|what| format!("run `{}`: {what}", self.name))
    }
}

/// The keys of a table as options of a command: `devices = 200` is `--devices 200`, `closed = true` is `--closed`, and a
/// list of texts is the option several times. The error names the key.
pub fn arguments(options: &toml::Table) -> std::result::Result<Vec<String>, String> {
    let mut arguments = Vec::new();
    for (name, value) in options {
        let flag = format!("--{}", name.replace('_', "-"));
        let values = match value {
            toml::Value::Boolean(true) => {
                arguments.push(flag);
                continue;
            }
            toml::Value::Boolean(false) => continue,
            toml::Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            // One word, so that a value that begins with `-` is not an option.
            arguments.push(format!("{flag}={}", text(name, value)?));
        }
    }
    Ok(arguments)
}

fn text(name: &str, value: &toml::Value) -> std::result::Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        other => Err(format!(
            "`{name}` has a value of type {}; options are text, numbers, true or lists of them",
            other.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{ledger, thingsboard};
    use load::scenario::Scenario;

    #[derive(Debug, Parser)]
    enum Line {
        Thingsboard(Box<thingsboard::Options>),
        Ledger(Box<ledger::Options>),
    }

    fn load(name: &str) -> OptionsFile {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
        OptionsFile::load(&path).unwrap()
    }

    #[test]
    fn every_run_of_the_published_scenarios_is_a_valid_command_line() {
        for file in ["thingsboard-runs.toml", "ledger-runs.toml"] {
            let scenario = load(file);
            for run in &scenario.runs {
                let words = ["bench".to_owned(), scenario.scenario.clone()];
                let words = words.into_iter().chain(run.arguments().unwrap());
                match Line::try_parse_from(words).unwrap_or_else(|e| panic!("{file}, {}: {e}", run.name)) {
                    Line::Thingsboard(options) => drop(options.sets().unwrap()),
                    Line::Ledger(options) => {
                        let scenario = Scenario::load("ledger", &options.sets()).unwrap();
                        drop(targets::driver_of(&scenario).unwrap());
                    }
                }
            }
        }
    }

    #[test]
    fn the_steps_of_the_article_have_its_devices_and_rates() {
        let file = load("thingsboard-runs.toml");
        for (name, devices, rate) in [
            ("step-1", 1_000, 2_500.0),
            ("step-2", 10_000, 10_000.0),
            ("step-4", 18_000, 36_000.0),
            ("article", 18_000, 30_000.0),
        ] {
            let arguments = file.run(name).unwrap().arguments().unwrap().join(" ");
            let scenario = crate::command::understood(&format!("thingsboard {arguments}")).unwrap();
            let phase = &scenario.phases[0];
            assert_eq!((phase.connections(), phase.mixes[0].rate), (devices, Some(rate)), "{name}");
        }
    }

    #[test]
    fn options_become_arguments() {
        let scenario = load("thingsboard-runs.toml");
        let run = scenario.run("saturation").unwrap();
        assert_eq!(run.arguments().unwrap().join(" "), "--closed --devices=200 --duration=60s --window=64");
        let error = scenario.run("satiation").unwrap_err();
        assert!(error.contains("there are article, saturation"), "{error}");
    }

    #[test]
    fn unknown_keys_and_nested_options_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.toml");
        for (text, expected) in [
            ("scenario = 'ledger'\nruns = 3", "runs"),
            (
                "scenario = 'ledger'\n[[run]]\nname = 'a'\nabout = ''\noptions = { kills = [[1]] }",
                "`kills` has a value of type array",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let error = OptionsFile::load(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("x.toml"), "{error}");
        }
    }
}
