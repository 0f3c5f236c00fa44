//! `result.json`, schema 1: what a run was, what it counted, and whether it is worth anything. Times are in
//! microseconds or seconds as the names say; no field holds a path or a name of a machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, Clock, Fault, Gate, Summary};
use crate::machine::Machine;
use crate::statistics::Interval;

/// Version of `result.json` that this build writes and reads.
pub const SCHEMA: u32 = 1;

/// Everything about one run but its histograms and series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always `SCHEMA`.
    pub schema: u32,
    /// Whether every gate and check passed and no fault was seen. Written for readers of the JSON; `validity()` does
    /// not believe it where the gates say otherwise.
    pub valid: bool,
    /// Why the run ended before its plan did, if it did.
    pub partial: Option<Partial>,
    /// What produced the figures.
    pub tool: Tool,
    /// The scenario as it was run.
    pub scenario: ScenarioAsRun,
    /// How the run was asked for.
    pub command_line: Vec<String>,
    /// Seed of schedule and data.
    pub seed: u64,
    /// Begin, UTC, `2026-11-21T07:01:37Z`.
    pub started: String,
    /// Begin, seconds since 1970.
    pub started_unix_s: u64,
    /// Length of the whole run, seconds.
    pub took_s: f64,
    /// The machine of the generator; `None` for results of other tools, which do not say.
    pub machine: Option<Machine>,
    /// The clocks behind the latencies.
    pub clocks: Option<Clocks>,
    /// The processes that made the load.
    pub generators: Vec<Generator>,
    /// The system under test.
    pub target: Target,
    /// The phases in the order they ran.
    pub phases: Vec<Phase>,
    /// Rules fixed beforehand; one that failed makes the run invalid.
    pub gates: Vec<Gate>,
    /// What was verified of the target's state and answers; one that failed makes the run invalid.
    pub verification: Vec<Check>,
    /// What went wrong while the run lasted; any makes the run invalid.
    pub faults: Vec<Fault>,
    /// What the figures show, in sentences.
    pub findings: Vec<String>,
    /// What the figures do not show, in sentences.
    pub hides: Vec<String>,
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `tacho`, or the tool whose output was imported.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its source commit, if known.
    pub commit: Option<String>,
}

/// The scenario as it was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioAsRun {
    /// Name; two runs are compared only if it is equal.
    pub name: String,
    /// One line that says what it does.
    pub about: String,
    /// The driver: `mqtt`, `redis`, `sql` and so on.
    pub driver: String,
    /// The article or table it reproduces, if any.
    pub article: Option<String>,
    /// The effective scenario file as JSON, every override applied.
    pub configuration: Value,
}

/// Why and when a run ended early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// What ended it: `interrupted (Ctrl-C)`.
    pub reason: String,
    /// Seconds after the begin of the run.
    pub at_s: f64,
}

/// The clocks behind the latencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// The clock that was read.
    pub source: String,
    /// What the kernel builds it on: `tsc`, `kvm-clock` and so on.
    pub kernel_source: String,
}

/// One process that made load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Threads that sent.
    pub threads: u32,
    /// CPU time of the measured phases, kernel included and polling instead of sleeping left out, seconds.
    pub cpu_s: Option<f64>,
}

/// The system under test as far as it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Its address, without user and password.
    pub address: String,
    /// Product and version as the server names itself.
    pub product: Option<String>,
    /// Whether this run started it.
    pub started_by_run: bool,
    /// Settings that it reports.
    pub settings: BTreeMap<String, String>,
}

/// One phase: load, warm-up, run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name in the scenario.
    pub name: String,
    /// `load`, `warmup`, `run`.
    pub kind: String,
    /// Whether its figures are the result; those of a load or warm-up are not.
    pub measured: bool,
    /// Begin of its load, seconds after the begin of the run.
    pub starts_s: f64,
    /// Begin of the measured part, seconds after the begin of the load.
    #[serde(default)]
    pub warmup_s: f64,
    /// Length of the measured part, seconds.
    pub duration_s: f64,
    /// How operations came about.
    pub arrival: Arrival,
    /// Connections.
    pub connections: u32,
    /// All operations together.
    pub total: Operation,
    /// One entry per class of operation.
    pub operations: Vec<Operation>,
    /// What it cost generator and target.
    pub cost: Cost,
    /// Where the steady part begins; `None` where nothing was looked at.
    pub steady: Option<Steady>,
    /// How sure the figures are within this run; `None` for fewer than eight seconds.
    #[serde(default)]
    pub uncertainty: Option<Uncertainty>,
}

/// 95 % intervals within one run. They say nothing of how another run would differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Of the operations per second.
    pub completed_per_s: Interval,
    /// Of the 99th percentile of response time, microseconds.
    pub response_p99_us: Option<Interval>,
}

/// How operations came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Arrival {
    /// By a schedule that does not wait for answers.
    Open {
        /// `poisson`, `fixed`, `steps`, `staircase`.
        process: String,
        /// Operations came due at ticks of a timer of this period; 0 for at any time.
        #[serde(default, skip_serializing_if = "is_zero")]
        timer_us: u32,
        /// Operations per second asked for; of several steps the mean.
        rate_per_s: f64,
    },
    /// A new operation as soon as an answer came.
    Closed {
        /// Operations in flight at one time, those among them whose place pauses after an answer.
        concurrency: u64,
        /// How long a place pauses, microseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        pause_us: u32,
    },
    /// Several closed loops of different windows or pauses.
    Loops,
    /// An imported result whose tool does not say.
    Unknown,
}

/// Results of loads without a timer or pause do not speak of it.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Arrival {
    /// Whether answers make room for operations.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Loops)
    }

    /// As a reader is told.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Open { process, timer_us: 0, rate_per_s } => {
                format!("open loop, {process}, {rate_per_s:.0}/s")
            }
            Self::Open { process, timer_us, rate_per_s } => {
                format!("open loop, {process} on ticks of {timer_us} us, {rate_per_s:.0}/s")
            }
            Self::Closed { concurrency, pause_us: 0 } => format!("closed loop, {concurrency} in flight"),
            Self::Closed { concurrency, pause_us } => {
                let pause_ms = f64::from(*pause_us) / 1e3;
                format!("closed loop, {concurrency} in flight or in their pause of {pause_ms} ms")
            }
            Self::Loops => "several closed loops".to_owned(),
            Self::Unknown => "load not known".to_owned(),
        }
    }
}

/// Counts and times of one class of operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Name of the class; `all` for the total.
    pub name: String,
    /// Counts.
    pub counts: OperationCounts,
    /// Completed operations per second of the phase.
    pub completed_per_s: f64,
    /// From the intended start to the answer. `None` where nobody measured it.
    pub response: Option<Summary>,
    /// From the send to the answer.
    pub service: Option<Summary>,
    /// From the moment it was due and could be sent to the send.
    pub lag: Option<Summary>,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Operations whose intended time came; in a closed loop those begun.
    pub planned: u64,
    /// Operations handed to the kernel.
    pub sent: u64,
    /// Operations answered with success.
    pub completed: u64,
    /// Operations completed while the phase lasted, whenever they were due: the throughput. 0 where nobody counted
    /// them apart; then it is `completed`.
    #[serde(default)]
    pub completed_in_time: u64,
    /// Failures by what happened.
    pub errors: BTreeMap<String, u64>,
    /// Answers that held what was asked for, where a driver can tell.
    pub hits: u64,
    /// Answers that did not.
    pub misses: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Counters of the driver: statements of a transaction and the like.
    pub extra: BTreeMap<String, u64>,
}

impl Operation {
    /// The place of a clock's summary.
    pub(crate) fn clock_mut(&mut self, clock: Clock) -> &mut Option<Summary> {
        match clock {
            Clock::Response => &mut self.response,
            Clock::Service => &mut self.service,
            Clock::Lag => &mut self.lag,
        }
    }
}

impl OperationCounts {
    /// All failures.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the counts of another class or process.
    pub fn merge(&mut self, other: &Self) {
        self.planned += other.planned;
        self.sent += other.sent;
        self.completed += other.completed;
        self.completed_in_time += other.completed_in_time;
        self.hits += other.hits;
        self.misses += other.misses;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (what, count) in &other.errors {
            *self.errors.entry(what.clone()).or_default() += count;
        }
        for (what, count) in &other.extra {
            *self.extra.entry(what.clone()).or_default() += count;
        }
    }
}

/// What a phase cost. `None` where nothing could be sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the generator per completed operation, kernel included, microseconds.
    pub generator_cpu_us_per_operation: Option<f64>,
    /// CPU time of the generator, percent of one core.
    pub generator_cpu_percent: Option<f64>,
    /// Time in which generator threads polled instead of sleeping (`busy_poll_us`), percent of one core; it is in neither of
    /// the two above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_polling_percent: Option<f64>,
    /// CPU time of the target per completed operation, kernel included, microseconds.
    pub target_cpu_us_per_operation: Option<f64>,
    /// CPU time of the target, percent of one core.
    pub target_cpu_percent: Option<f64>,
    /// Largest resident memory of the target seen, bytes.
    pub target_rss_bytes_max: Option<u64>,
    /// Growth of the target's memory while the connections were opened and nothing was sent, bytes per connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_rss_bytes_per_connection: Option<f64>,
}

impl Phase {
    /// End of the load, seconds after the begin of the run. Answers may come in later.
    pub fn ends_s(&self) -> f64 {
        self.starts_s + self.warmup_s + self.duration_s
    }
}

/// Where a phase is in steady state, if anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Whether a steady part was found.
    pub found: bool,
    /// Its begin, seconds after the begin of the phase.
    pub from_s: f64,
    /// Change of the completed operations per second over the part looked at, as a share of their mean.
    pub drift: f64,
    /// The answer in words.
    pub sentence: String,
}
