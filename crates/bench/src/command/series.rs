//! A series of runs for `capacity` and `ab`: one phase of one scenario, repeated with other settings.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use load::result::{Bundle, write_whole};
use load::scenario::{Phase, PhaseKind, Scenario};
use load::{Error, Result};
use serde::Serialize;
use targets::Context;
use targets::command_line::LEFT_BEHIND;

use super::generators::Generators;
use super::signals::stop_on_signals;
use crate::report::{default_directory, refuse_used};
use crate::runner;
use crate::runner::interleaver::{Interleaver, interleave, interrupted};

/// The scenario and where results go.
#[derive(Debug, Args)]
pub(super) struct SeriesArgs {
    /// Name of a built-in scenario (`tacho bench list`), or a file
    name: String,
    /// Address of the server under test
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    #[command(flatten)]
    options: SeriesOptions,
}

// How the runs of a series are made. No documentation of the type: clap would give it as that of the command.
#[derive(Debug, Clone, Args)]
pub(super) struct SeriesOptions {
    /// Changes one key of the scenario in every run
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Size of data and of counted requests, as a share of the original
    #[arg(long, value_name = "SHARE")]
    scale: Option<f64>,
    /// The phase that is run again and again [default: the only one of kind `run`]
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// The data is there already: phases that load it are not run
    #[arg(long)]
    no_load: bool,
    /// Process of the target on this machine, to sample its CPU time and memory
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    #[command(flatten)]
    generators: Generators,
    /// Directory of the results [default: bench-runs/<UTC>-<command>-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl SeriesArgs {
    /// A series of a scenario, at a target if it is not that of the scenario.
    pub(super) fn new(name: &str, target: Option<&str>, options: SeriesOptions) -> Self {
        Self { name: name.to_owned(), target: target.map(str::to_owned), options }
    }

    /// The scenario and the name of its phase.
    pub(super) fn load(&self) -> Result<(Scenario, String)> {
        let scenario = load(self, &[])?;
        let phase = chosen(&scenario, self.options.phase.as_deref())?.name.clone();
        Ok((scenario, phase))
    }

    /// Refuses a phase with several results under these settings.
    pub(super) fn check_phase(&self, phase: &str, sets: &[String]) -> Result<()> {
        one_result(&load(self, sets)?, phase)
    }
}

impl SeriesOptions {
    /// Whether no option is given.
    pub(super) fn is_empty(&self) -> bool {
        let Self { sets, scale, phase, no_load, server_pid, generators, out } = self;
        let has_value = scale.is_some() || phase.is_some() || server_pid.is_some() || out.is_some();
        sets.is_empty() && !has_value && !no_load && !generators.are_several()
    }

    /// Whether the options name the server under test.
    pub(super) fn names_target(&self) -> bool {
        let is_target = |set: &String| set.split_once('=').is_some_and(|(key, _)| key.trim() == "target.url");
        self.sets.iter().any(is_target)
    }
}

/// A series in progress.
pub(super) struct RunSeries<'a> {
    args: &'a SeriesArgs,
    context: &'a Context,
    /// The name of the phase.
    pub(super) phase: String,
    /// The directory of the results.
    pub(super) directory: PathBuf,
    /// The seed of the scenario.
    pub(super) seed: u64,
    stop: Arc<AtomicBool>,
}

impl<'a> RunSeries<'a> {
    /// Starts a series. `command` is a part of the default directory's name.
    pub(super) fn begin(args: &'a SeriesArgs, command: &str, context: &'a Context) -> Result<Self> {
        let (scenario, phase) = args.load()?;
        let own = || default_directory(&format!("{command}-{}", scenario.head.name));
        let directory = args.options.out.clone().unwrap_or_else(own);
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        refuse_used(&directory)?;
        // A directory that cannot be written is noticed before the first run.
        tempfile::tempfile_in(&directory).map_err(Error::file(&directory))?;
        let (phase, seed, stop) = (phase, scenario.head.seed, stop_on_signals()?);
        Ok(Self { args, context, phase, directory, seed, stop })
    }

    /// A flag that Ctrl-C and SIGTERM set.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// An error after Ctrl-C or SIGTERM.
    pub(super) fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(()) }
    }

    /// Whether several processes share the load.
    pub(super) fn is_shared(&self) -> bool {
        self.args.options.generators.are_several()
    }

    /// The scenario with more settings.
    pub(super) fn scenario(&self, sets: &[String]) -> Result<Scenario> {
        load(self.args, sets)
    }

    /// Runs the load phases before the measured one. Returns findings about data that stays on the target.
    pub(super) fn load_data(&self, sets: &[String]) -> Result<Vec<String>> {
        let scenario = self.scenario(sets)?;
        one_result(&scenario, &self.phase)?;
        let names = loads_before(&scenario, &self.phase);
        if self.args.options.no_load || names.is_empty() {
            return Ok(Vec::new());
        }
        let bundle = self.run_phases(&scenario, names, "data".to_owned())?;
        let validity = bundle.result.validity();
        match validity.reasons().next() {
            None => {
                let leftovers =
                    bundle.result.findings.iter().filter(|finding| finding.starts_with(LEFT_BEHIND));
                Ok(leftovers.cloned().collect())
            }
            Some(reason) => Err(Error::Verdict(format!("the data could not be loaded: {reason}"))),
        }
    }

    /// The part of a scenario that determines its data.
    pub(super) fn data_of(&self, scenario: &Scenario) -> toml::Table {
        data_of(scenario, &self.phase)
    }

    /// Runs the measured phase with more settings and keeps its bundle as `name`. The label is for the progress on a
    /// terminal.
    pub(super) fn run(&self, sets: &[String], name: &str, label: String) -> Result<Bundle> {
        let scenario = self.scenario(sets)?;
        one_result(&scenario, &self.phase)?;
        let bundle = self.run_phases(&scenario, vec![self.phase.clone()], label)?;
        self.keep(&bundle, name)?;
        self.check_stop()?;
        Ok(bundle)
    }

    /// Alternates the measured phase with two settings; `lead` chooses the slices. Returns the answer of `lead`, and
    /// both bundles. Without an answer it keeps the bundles at once, like [`Self::keep_sides`].
    pub(super) fn interleave<T>(
        &self,
        sides: [&Scenario; 2],
        lead: impl FnOnce(&Interleaver) -> Result<T>,
    ) -> Result<(T, [Option<Bundle>; 2])> {
        let (answered, sides) = interleave(sides, &self.phase, self.context, &self.stop, lead);
        match answered {
            Ok(answer) => Ok((answer, sides)),
            Err(error) if sides.iter().all(Option::is_none) => Err(error),
            Err(error) => match self.keep_sides(&sides) {
                Ok(()) => Err(self.unfinished(error)),
                Err(lost) => Err(Error::Verdict(format!("{error}; {lost}"))),
            },
        }
    }

    /// Keeps the bundles of two sides as `A` and `B`.
    pub(super) fn keep_sides(&self, sides: &[Option<Bundle>; 2]) -> Result<()> {
        let named = sides.iter().zip(["A", "B"]);
        // A failure of the first does not prevent the second.
        let kept = named.map(|(side, name)| side.as_ref().map_or(Ok(()), |side| self.keep(side, name)));
        kept.fold(Ok(()), Result::and)
    }

    /// Whether a run was kept.
    pub(super) fn has_run(&self) -> bool {
        fs::read_dir(&self.directory).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// An error, with the directory of the finished runs.
    pub(super) fn unfinished(&self, error: Error) -> Error {
        if !self.has_run() {
            return error;
        }
        Error::Verdict(format!("{error}; what was run so far is in {}", self.directory.display()))
    }

    fn keep(&self, bundle: &Bundle, name: &str) -> Result<()> {
        let kept = bundle.write_or_rescue(&self.directory.join(name), &mut std::io::stderr());
        kept.map(drop).map_err(|error| Error::Verdict(error.to_string()))
    }

    fn run_phases(&self, scenario: &Scenario, phases: Vec<String>, label: String) -> Result<Bundle> {
        let (label, stop) = (Some(label), Arc::clone(&self.stop));
        let options = runner::Options { phases, label, stop, ..runner::Options::default() };
        self.args.options.generators.run(scenario, &options, self.context)
    }

    /// Writes the answer with its evidence. It was printed before, so that a full disk does not lose it.
    pub(super) fn write(&self, name: &str, value: &impl Serialize) -> Result<PathBuf> {
        let path = self.directory.join(name);
        let text = serde_json::to_string_pretty(value).expect("BUG: an answer has only text keys") + "\n";
        let lost = |source: io::Error| {
            let advice = match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    format!("; it needs {} bytes: free some or name another disk with --out", text.len())
                }
                _ => String::new(),
            };
            Error::Verdict(format!(
                "{} could not be written: {source}{advice}. What it was to hold is what was said above",
                path.display()
            ))
        };
        write_whole(&path, text.as_bytes()).map_err(lost)?;
        Ok(path)
    }
}

fn load(args: &SeriesArgs, more: &[String]) -> Result<Scenario> {
    let options = &args.options;
    let mut sets = options.sets.clone();
    sets.extend(args.target.as_ref().map(|url| format!("target.url={url}")));
    sets.extend(options.scale.map(|scale| format!("scale={scale:?}")));
    sets.extend(options.server_pid.map(|pid| format!("target.pid={pid}")));
    sets.extend(more.iter().cloned());
    Scenario::load(&args.name, &sets)
}

/// Refuses a phase with several results.
fn one_result(scenario: &Scenario, phase: &str) -> Result<()> {
    let wrong = |what| Error::Scenario { path: (&scenario.head.name).into(), what };
    let results = targets::results(scenario, phase).map_err(wrong)?;
    if results.len() <= 1 {
        return Ok(());
    }
    Err(Error::Options(format!(
        "phase `{phase}` has {} results ({}), and one is needed: choose another phase with --phase, or settings with which it \
         has one, such as --set phase.{phase}.operations=\"['one-1h']\" for `reads`, --set phase.{phase}.arrival=poisson for steps",
        results.len(),
        results.join(", ")
    )))
}

fn chosen<'s>(scenario: &'s Scenario, name: Option<&str>) -> Result<&'s Phase> {
    let phases: Vec<&Phase> = match name {
        Some(name) => scenario.phases.iter().filter(|phase| phase.name == name).collect(),
        None => scenario.phases.iter().filter(|phase| phase.kind == PhaseKind::Run).collect(),
    };
    let known = || scenario.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>().join(", ");
    match phases.as_slice() {
        [only] => Ok(only),
        [] => Err(Error::Options(format!("there is no such phase; {} has {}", scenario.head.name, known()))),
        _ => Err(Error::Options(format!(
            "{} has several phases that measure; choose one with --phase: {}",
            scenario.head.name,
            known()
        ))),
    }
}

/// The scenario without keys that only its other phases use.
fn data_of(scenario: &Scenario, phase: &str) -> toml::Table {
    let loads = loads_before(scenario, phase);
    let mut data = scenario.effective.clone();
    data.remove("gates");
    data.remove("slo");
    if let Some(phases) = data.get_mut("phase").and_then(toml::Value::as_array_mut) {
        let is_load = |one: &toml::Value| {
            one.get("name")
                .and_then(toml::Value::as_str)
                .is_some_and(|name| loads.iter().any(|load| load == name))
        };
        phases.retain(is_load);
    }
    data
}

/// The load phases before a phase. A later load phase may remove the data.
fn loads_before(scenario: &Scenario, phase: &str) -> Vec<String> {
    let before = scenario.phases.iter().take_while(|one| one.name != phase);
    before.filter(|one| one.kind == PhaseKind::Load).map(|one| one.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, phase: &str, sets: &[&str]) -> Option<String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        one_result(&Scenario::load(name, &sets).unwrap(), phase).err().map(|error| error.to_string())
    }

    #[test]
    fn data_is_loaded_and_not_removed_before_it_is_used() {
        let scenario = Scenario::load("sysbench-oltp-read-write", &[]).unwrap();
        assert_eq!(scenario.phases.last().unwrap().kind, PhaseKind::Load, "the tables are dropped at last");
        assert_eq!(loads_before(&scenario, "run"), ["load"]);
        assert!(loads_before(&scenario, "load").is_empty());
    }

    #[test]
    fn two_sides_share_their_data_unless_a_setting_is_of_the_data() {
        let data = |set: &str| {
            let scenario = Scenario::load("sysbench-oltp-read-write", &[set.to_owned()]).unwrap();
            data_of(&scenario, "run")
        };
        let same = data("phase.run.connections=32");
        assert_eq!(data("phase.run.connections=16"), same);
        assert_eq!(data("gates.error_share_max=1"), same);
        for other in
            ["dataset.tables=3", "scale=0.5", "target.url=mysql://127.0.0.2/a", "phase.load.connections=9"]
        {
            assert_ne!(data(other), same, "{other}");
        }
    }

    #[test]
    fn a_phase_with_several_results_is_refused_before_anything_runs() {
        let reads = refused("reads", "rest", &[]).unwrap();
        let (_, names) = reads.split_once(" results (").unwrap();
        let names: Vec<&str> = names.split_once(')').unwrap().0.split(", ").collect();
        assert!(names.contains(&"rest-one-1h") && names.contains(&"rest-sql-one-1h"), "{reads}");
        assert!(reads.contains(&format!("has {} results", names.len())), "{reads}");
        let connections = refused("slb-s1", "connections", &[]).unwrap();
        assert!(
            connections.contains("connections-open, connections-hold, connections-probe"),
            "{connections}"
        );
        assert_eq!(refused("reads", "rest", &["phase.rest.operations=['one-1h']"]), None);
        assert_eq!(refused("slb-s1", "cps", &[]), None);
        let steps =
            ["phase.run.arrival=steps", "phase.run.rate=10", "phase.run.rate_to=20", "phase.run.steps=3"];
        assert!(refused("thingsboard", "run", &steps).unwrap().contains("run-1, run-2, run-3"));
    }
}
