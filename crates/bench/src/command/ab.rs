//! `tacho bench ab`: carries out the steps of `crate::ab`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use load::result::{Arrival, Bundle, Phase};
use load::statistics::paired::{P99_MARGIN, THROUGHPUT_MARGIN};
use load::{Error, Result};
use serde::Serialize;
use targets::Context;
use targets::command_line::setting;

use super::ab_slices::sliced;
use super::output::write_line;
use super::series::{RunSeries, SeriesArgs, SeriesOptions};
use crate::ab::{Answer, Arm, FigureKind, Metric, Plan, Run, Step, block_seed, next};
use crate::runner::interleaver::Interleaver;

/// The change of CPU time per operation that counts as none.
const CPU_MARGIN: f64 = 0.03;

/// The largest number of blocks of whole runs.
const BLOCKS_MAX: usize = 40;
const SLICE_HELP: &str = "\
Length of a slice, milliseconds: both sides stay connected and warm and take turns in random order, so that what disturbs the
machine for longer than a slice disturbs both alike. 0 compares whole runs, each with connections of its own.
A load on a schedule is cut only where it is asked for: 20 is a good length where nearly all answers take less than a millisecond, 50
and more where some take as long as that. Its answers count from when they were due, but when a server stands still for longer than
a slice, those who would have come meanwhile are missing. Whole runs have them.
[default: 20 of a closed loop of redis, http, tcp and mqtt, 50 of one of sql, of kernels of host and of one question of reads, but at
least a pause of the loop; 0 of everything else: open loops, loads with an end of their own, fio, phases of connections of tcp, and
ledger]";

/// Which figure is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Primary {
    /// Completed operations per second.
    Throughput,
    /// The 99th percentile of response time.
    P99,
    /// CPU time of the target per operation.
    Cpu,
}

/// The two settings
#[derive(Debug, Args)]
#[command(after_help = "\
Without --a or --b that side is the scenario as it is; with neither, it is compared with itself.

Examples:
  tacho bench ab gemini-str32 --a target.url=redis://127.0.0.1:6379 --b target.url=redis://127.0.0.1:6380
  tacho bench ab gemini-str32 --b dataset.size=64 --set phase.run.duration=10s --primary throughput")]
pub struct AbArgs {
    #[command(flatten)]
    series: SeriesArgs,
    /// Changes one key of the scenario for A
    #[arg(long = "a", value_name = "KEY=VALUE")]
    a: Vec<String>,
    /// Changes one key of the scenario for B
    #[arg(long = "b", value_name = "KEY=VALUE")]
    b: Vec<String>,
    /// The figure that decides [default: p99 of an open loop, throughput of a closed one]
    #[arg(long)]
    primary: Option<Primary>,
    /// Most blocks of A and B [default: 40; of slices a minute of each side]
    #[arg(long, value_name = "NUMBER")]
    blocks_max: Option<usize>,
    /// Length of a slice, milliseconds: both sides stay connected and take turns; 0 compares whole runs
    #[arg(long, value_name = "MS", long_help = SLICE_HELP)]
    slice_ms: Option<u32>,
}

// How a change of a running target is compared with the target as it is.
#[derive(Debug, Clone, Args)]
pub struct ChangeOptions {
    #[command(flatten)]
    series: SeriesOptions,
    /// The figure that decides [default: p99 of an open loop, throughput of a closed one]
    #[arg(long)]
    primary: Option<Primary>,
    /// Most blocks of A and B [default: 40]
    #[arg(long, value_name = "NUMBER")]
    blocks_max: Option<usize>,
}

impl ChangeOptions {
    /// Whether no option is given.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty() && self.primary.is_none() && self.blocks_max.is_none()
    }

    /// Whether the options name the server under test (`--set target.url=URL`).
    pub fn names_target(&self) -> bool {
        self.series.names_target()
    }
}

/// What is done to a target between whole runs: it is made A or B.
pub trait Arms {
    /// Begins after the data is loaded and before the first run. `directory` takes the results, `stop` is set by Ctrl-C and
    /// SIGTERM.
    fn begin(&mut self, directory: &Path, stop: Arc<AtomicBool>) -> Result<()>;

    /// Makes the target A or B. An error ends the comparison.
    fn before(&mut self, arm: Arm) -> Result<()>;

    /// Looks at the target after a run, which has no bundle if it failed. An error is the reason why the run is not valid,
    /// and ends the comparison.
    fn after(&mut self, arm: Arm, bundle: Option<&Bundle>) -> std::result::Result<(), String>;
}

/// The arms of a comparison whose settings are those of the scenario.
struct OfScenario;

impl Arms for OfScenario {
    fn begin(&mut self, _: &Path, _: Arc<AtomicBool>) -> Result<()> {
        Ok(())
    }

    fn before(&mut self, _: Arm) -> Result<()> {
        Ok(())
    }

    fn after(&mut self, _: Arm, _: Option<&Bundle>) -> std::result::Result<(), String> {
        Ok(())
    }
}

/// A finished or broken off comparison of a change.
#[derive(Debug)]
pub struct ChangeCompared {
    /// The answer, or the reason why there is none.
    pub answer: Result<Answer>,
    /// All runs in their order.
    pub runs: Vec<Run>,
    /// The directory of the results.
    pub directory: PathBuf,
    /// The measured phase.
    pub phase: String,
}

/// A change of a running target: what is compared.
#[derive(Debug)]
pub struct ChangeSides<'a> {
    /// Name or file of the scenario.
    pub scenario: &'a str,
    /// Address of the server under test, if it is not that of the scenario.
    pub target: Option<&'a str>,
    /// A and B in words.
    pub labels: [String; 2],
}

/// Compares a target as it is (A) with the changed one (B) in whole runs. `arms` makes the changes. The caller undoes the last
/// one, whatever the result. An error means that `arms` was not used.
pub fn compare_change(
    sides: &ChangeSides<'_>,
    options: &ChangeOptions,
    context: &Context,
    arms: &mut dyn Arms,
    out: &mut dyn Write,
) -> Result<ChangeCompared> {
    let args = SeriesArgs::new(sides.scenario, sides.target, options.series.clone());
    let series = RunSeries::begin(&args, "prove", context)?;
    let scenario = series.scenario(&[])?;
    let [a, b] = &sides.labels;
    write_line(out, &format!("{}: A ({a}) against B ({b})", scenario.head.name))?;
    let leftovers = series.load_data(&[])?;
    leftovers.iter().try_for_each(|sentence| write_line(out, sentence))?;
    let mut runs = Vec::new();
    let plan = Wanted { sets: [&[], &[]], primary: options.primary, blocks_max: options.blocks_max };
    // From here on an error is a part of the result, because the caller must undo what `arms` has done.
    let mut compare = || {
        arms.begin(&series.directory, series.stop())?;
        let answer = whole_runs(&plan, &series, arms, &mut runs, out)?;
        write_line(out, answer.to_string().trim_end())?;
        let comparison = Comparison {
            scenario: &scenario.head.name,
            phase: &series.phase,
            a: vec![a.clone()],
            b: vec![b.clone()],
            answer: &answer,
            sentences: answer.to_string(),
            runs: &runs,
        };
        series.write("ab.json", &comparison)?;
        Ok(answer)
    };
    let answer = compare();
    Ok(ChangeCompared { answer, runs, directory: series.directory.clone(), phase: series.phase.clone() })
}

/// The content of `ab.json`.
#[derive(Serialize)]
struct Comparison<'a> {
    scenario: &'a str,
    phase: &'a str,
    a: Vec<String>,
    b: Vec<String>,
    answer: &'a Answer,
    /// The text of the answer.
    sentences: String,
    runs: &'a [Run],
}

/// Compares, and prints each run.
pub(super) fn run(args: &AbArgs, context: &Context, out: &mut dyn Write) -> Result<()> {
    let series = RunSeries::begin(&args.series, "ab", context)?;
    let (scenario, other) = (series.scenario(&args.a)?, series.scenario(&args.b)?);
    let sliced = sliced([&scenario, &other], &series, args.slice_ms)?;
    let [a, b] = [&args.a, &args.b].map(|sets| published(sets));
    write_line(out, &format!("{}: A {} against B {}", scenario.head.name, settings(&a), settings(&b)))?;
    let mut leftovers = series.load_data(&args.a)?;
    if series.data_of(&scenario) != series.data_of(&other) {
        leftovers.extend(series.load_data(&args.b)?);
    }
    leftovers.dedup();
    leftovers.iter().try_for_each(|sentence| write_line(out, sentence))?;
    let ((answer, runs), sides) = match &sliced {
        None => {
            let plan =
                Wanted { sets: [&args.a, &args.b], primary: args.primary, blocks_max: args.blocks_max };
            let mut runs = Vec::new();
            ((whole_runs(&plan, &series, &mut OfScenario, &mut runs, out)?, runs), None)
        }
        Some(sliced) => {
            write_line(out, &sliced.plan_line())?;
            let metrics_of = |known: &BTreeMap<String, f64>| metrics(known, sliced.is_open, args.primary);
            let lead =
                |interleaver: &Interleaver| sliced.compare(interleaver, args.blocks_max, metrics_of, out);
            let (answered, sides) = series.interleave([&scenario, &other], lead)?;
            (answered, Some(sides))
        }
    };
    // The answer is printed before it is written, so that a full disk does not lose it.
    write_line(out, answer.to_string().trim_end())?;
    let comparison = Comparison {
        scenario: &scenario.head.name,
        phase: &series.phase,
        a,
        b,
        answer: &answer,
        sentences: answer.to_string(),
        runs: &runs,
    };
    // The smaller file comes first. A failure of one does not prevent the other.
    let written = series.write("ab.json", &comparison);
    let kept = sides.map_or(Ok(()), |sides| series.keep_sides(&sides));
    let path = written.and_then(|path| kept.map(|()| path))?;
    write_line(out, &format!("result: {}", path.display()))
}

/// What a comparison of whole runs shall compare.
struct Wanted<'a> {
    /// The settings of A and B.
    sets: [&'a [String]; 2],
    primary: Option<Primary>,
    blocks_max: Option<usize>,
}

/// Compares whole runs: each block is a run of A and one of B. `history` takes all runs, also those before an error.
fn whole_runs(
    wanted: &Wanted<'_>,
    series: &RunSeries<'_>,
    arms: &mut dyn Arms,
    history: &mut Vec<Run>,
    out: &mut dyn Write,
) -> Result<Answer> {
    let mut plan: Option<Plan> = None;
    loop {
        // The figures, and the primary one, are known after the first run.
        let step = match &plan {
            Some(plan) => next(plan, history),
            None => Step::Run { arm: Arm::A, block: 1, pilot: true, blocks: 0 },
        };
        let (arm, block, pilot, blocks) = match step {
            Step::Done(answer) => return Ok(answer),
            Step::Run { arm, block, pilot, blocks } => (arm, block, pilot, blocks),
        };
        series.check_stop()?;
        arms.before(arm)?;
        // Both runs of a block have the same schedule; blocks differ.
        let mut sets = wanted.sets[arm as usize].to_vec();
        sets.push(format!("seed={}", block_seed(series.seed, block)));
        let label = format!("block {block}, {arm:?}");
        let bundle = series.run(&sets, &format!("run-{:03}-{arm:?}", history.len() + 1), label);
        if let Err(reason) = arms.after(arm, bundle.as_ref().ok()) {
            let phase = bundle.as_ref().ok().and_then(Bundle::main_phase);
            let values = phase.map(values).unwrap_or_default();
            history.push(Run { arm, values, invalid: Some(reason.clone()) });
            return Err(series.unfinished(Error::Verdict(reason)));
        }
        let bundle = bundle.map_err(|error| series.unfinished(error))?;
        let phase = bundle.main_phase().ok_or_else(|| Error::Verdict("a run has no result".to_owned()))?;
        if plan.is_none() {
            let open = matches!(phase.arrival, Arrival::Open { .. });
            let metrics = metrics(&values(phase), open, wanted.primary);
            let blocks_max = wanted.blocks_max.unwrap_or(BLOCKS_MAX);
            plan = Some(Plan { blocks_max, ..Plan::new(metrics, series.seed) });
        }
        let run = Run { arm, values: values(phase), invalid: invalid(&bundle) };
        write_line(out, &line(block, blocks, pilot, &run))?;
        history.push(run);
    }
}

/// The settings without passwords.
fn published(sets: &[String]) -> Vec<String> {
    sets.iter().map(|set| setting(set)).collect()
}

fn settings(sets: &[String]) -> String {
    if sets.is_empty() { "(as it is)".to_owned() } else { sets.join(" ") }
}

/// The metrics among the known figures, the primary one first.
fn metrics(known: &BTreeMap<String, f64>, open: bool, primary: Option<Primary>) -> Vec<Metric> {
    let metric = |name: &str, kind, margin| Metric { name: name.to_owned(), kind, margin };
    let rate = if open { FigureKind::PlannedRate } else { FigureKind::Rate };
    let mut metrics = vec![
        metric("throughput", rate, THROUGHPUT_MARGIN),
        metric("p99", FigureKind::Percentile, P99_MARGIN),
        metric("cpu", FigureKind::Cost, CPU_MARGIN),
    ];
    metrics.retain(|metric| known.contains_key(&metric.name));
    let first = match primary {
        Some(Primary::Throughput) => "throughput",
        Some(Primary::P99) => "p99",
        Some(Primary::Cpu) => "cpu",
        None if open => "p99",
        None => "throughput",
    };
    metrics.sort_by_key(|metric| metric.name != first);
    metrics
}

fn values(phase: &Phase) -> BTreeMap<String, f64> {
    let total = &phase.total;
    let p99 =
        total.response.as_ref().or(total.service.as_ref()).and_then(|summary| summary.quantile_us(0.99));
    [
        ("throughput", Some(total.completed_per_s)),
        ("p99", p99),
        ("cpu", phase.cost.target_cpu_us_per_operation),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|value| *value > 0.0)?)))
    .collect()
}

fn invalid(bundle: &Bundle) -> Option<String> {
    let reasons: Vec<String> = bundle.result.validity().reasons().map(str::to_owned).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn line(block: usize, blocks: usize, pilot: bool, run: &Run) -> String {
    let of = if blocks > 0 { format!("of about {blocks}") } else { String::new() };
    let values: Vec<String> = run.values.iter().map(|(name, value)| format!("{name} {value:.1}")).collect();
    let kind = if pilot { "A against A" } else { "" };
    let fault = run.invalid.as_deref().map(|fault| format!("  left out: {fault}")).unwrap_or_default();
    format!("block {block:>2} {of:<12} {:?}  {}  {kind}{fault}", run.arm, values.join("  "))
}
