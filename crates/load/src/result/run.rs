//! `result.json`, schema 1: the description of a run, its counts, and its validity. Times are in microseconds or
//! seconds, as the names say. No field holds a path or the name of a machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, Clock, Fault, Gate, Summary};
use crate::machine::Machine;
use crate::statistics::Interval;

/// The version of `result.json` that this build reads and writes.
pub const SCHEMA: u32 = 1;

/// A run without its histograms and series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always `SCHEMA`.
    pub schema: u32,
    /// Whether every gate and check passed and no fault occurred. It is written for readers of the JSON; `validity()`
    /// also looks at the gates.
    pub valid: bool,
    /// The reason why the run ended before its plan, if it did.
    pub partial: Option<Partial>,
    /// The program that measured.
    pub tool: Tool,
    /// The scenario as it was run.
    pub scenario: ScenarioAsRun,
    /// The command line of the run.
    pub command_line: Vec<String>,
    /// The seed of schedule and data.
    pub seed: u64,
    /// The start, UTC, `2026-11-21T07:01:37Z`.
    pub started: String,
    /// The start, seconds since 1970.
    pub started_unix_s: u64,
    /// Length of the whole run, seconds.
    pub took_s: f64,
    /// The machine of the generator; `None` for results of other tools, which do not name it.
    pub machine: Option<Machine>,
    /// The clocks behind the latencies.
    pub clocks: Option<Clocks>,
    /// The processes that made the load.
    pub generators: Vec<Generator>,
    /// The system under test.
    pub target: Target,
    /// The phases in the order they ran.
    pub phases: Vec<Phase>,
    /// Rules that were fixed before the run. A failed one makes the run invalid.
    pub gates: Vec<Gate>,
    /// Checks of the target's state and answers. A failed one makes the run invalid.
    pub verification: Vec<Check>,
    /// Failures during the run. Any of them makes the run invalid.
    pub faults: Vec<Fault>,
    /// Sentences about what the figures show.
    pub findings: Vec<String>,
    /// Sentences about what the figures do not show.
    pub hides: Vec<String>,
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `tacho`, or the tool whose output was imported.
    pub name: String,
    pub version: String,
    /// Its source commit, if known.
    pub commit: Option<String>,
}

/// The scenario as it was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioAsRun {
    /// Name; two runs are compared only if it is equal.
    pub name: String,
    /// One line that states what it does.
    pub about: String,
    /// The driver: `mqtt`, `redis`, `sql` and so on.
    pub driver: String,
    /// The article or table it reproduces, if any.
    pub article: Option<String>,
    /// The effective scenario file as JSON, every override applied.
    pub configuration: Value,
}

/// The reason and the time of an early end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// The reason: `interrupted (Ctrl-C)`.
    pub reason: String,
    /// Seconds after the start of the run.
    pub at_s: f64,
}

/// The clocks behind the latencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// The clock that the program reads.
    pub source: String,
    /// The kernel's clock source: `tsc`, `kvm-clock` and so on.
    pub kernel_source: String,
}

/// One process that made load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// The number of threads that sent.
    pub threads: u32,
    /// CPU time of the measured phases, including the kernel and excluding busy polling, seconds.
    pub cpu_s: Option<f64>,
}

/// The system under test, as far as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Its address, without user and password.
    pub address: String,
    /// Product and version as the server names itself.
    pub product: Option<String>,
    /// How the certificate of its TLS was checked; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Whether the run started it.
    pub started_by_run: bool,
    /// The settings that it reports.
    pub settings: BTreeMap<String, String>,
}

/// One phase: load, warm-up, run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name in the scenario.
    pub name: String,
    /// `load`, `warmup`, `run`.
    pub kind: String,
    /// Whether the figures are the result. Those of a load or warm-up phase are not.
    pub measured: bool,
    /// The start of the load, seconds after the start of the run.
    pub starts_s: f64,
    /// The start of the measured part, seconds after the start of the load.
    #[serde(default)]
    pub warmup_s: f64,
    /// Length of the measured part, seconds.
    pub duration_s: f64,
    /// How operations arrive.
    pub arrival: Arrival,
    /// The number of connections.
    pub connections: u32,
    /// All operations together.
    pub total: Operation,
    /// One entry per class of operation.
    pub operations: Vec<Operation>,
    /// The cost for generator and target.
    pub cost: Cost,
    /// The start of the steady part; `None` if it was not looked for.
    pub steady: Option<Steady>,
    /// The uncertainty of the figures within this run; `None` for fewer than eight seconds.
    #[serde(default)]
    pub uncertainty: Option<Uncertainty>,
}

/// 95 % intervals within one run. They do not cover the difference between runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Of the operations per second.
    pub completed_per_s: Interval,
    /// Of the 99th percentile of response time, microseconds.
    pub response_p99_us: Option<Interval>,
}

/// How operations arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Arrival {
    /// On a schedule, independent of answers.
    Open {
        /// `poisson`, `fixed`, `steps`, `staircase`.
        process: String,
        /// The period of the timer at whose ticks operations came due, microseconds; 0 without a timer.
        #[serde(default, skip_serializing_if = "is_zero")]
        timer_us: u32,
        /// The planned operations per second; the mean of several steps.
        rate_per_s: f64,
    },
    /// In a closed loop: an answer allows the next operation.
    Closed {
        /// The number of operations in flight or in a pause.
        concurrency: u64,
        /// The pause after an answer, microseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        pause_us: u32,
    },
    /// Closed loops with different windows or pauses, or beside connections without operations.
    Loops,
    /// An imported result that does not say.
    Unknown,
}

/// Skips the field in results of loads without a timer or pause.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Arrival {
    /// Whether answers allow the next operation.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Loops)
    }

    /// The text for readers.
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
    pub counts: OperationCounts,
    /// Completed operations per second of the phase.
    pub completed_per_s: f64,
    /// From the intended start to the answer. `None` if it was not measured.
    pub response: Option<Summary>,
    /// From the send to the answer.
    pub service: Option<Summary>,
    /// From the moment at which the operation was due and could be sent, to the send.
    pub lag: Option<Summary>,
}

/// The counts of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Operations whose intended time came; in a closed loop the operations that were begun.
    pub planned: u64,
    /// Operations handed to the kernel.
    pub sent: u64,
    /// Operations answered with success.
    pub completed: u64,
    /// Operations completed during the phase, whenever they were due: the throughput. 0 if they were not counted
    /// separately; then `completed` applies.
    #[serde(default)]
    pub completed_in_time: u64,
    /// Failures by reason.
    pub errors: BTreeMap<String, u64>,
    /// Answers that contain the requested item, if the driver can tell.
    pub hits: u64,
    /// Answers that do not.
    pub misses: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Counters of the driver: statements of a transaction and the like.
    pub extra: BTreeMap<String, u64>,
}

impl Operation {
    /// The summary of a clock, for writing.
    pub(crate) fn clock_mut(&mut self, clock: Clock) -> &mut Option<Summary> {
        match clock {
            Clock::Response => &mut self.response,
            Clock::Service => &mut self.service,
            Clock::Lag => &mut self.lag,
        }
    }
}

impl OperationCounts {
    /// The number of all failures.
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

/// The cost of a phase. `None` for values that could not be sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the generator per completed operation, kernel included, microseconds.
    pub generator_cpu_us_per_operation: Option<f64>,
    /// CPU time of the generator, percent of one core.
    pub generator_cpu_percent: Option<f64>,
    /// Time in which generator threads polled instead of sleeping (`busy_poll_us`), percent of one core. The two values
    /// above exclude it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_polling_percent: Option<f64>,
    /// CPU time of the target per completed operation, kernel included, microseconds.
    pub target_cpu_us_per_operation: Option<f64>,
    /// CPU time of the target, percent of one core.
    pub target_cpu_percent: Option<f64>,
    /// The largest resident memory of the target, bytes.
    pub target_rss_bytes_max: Option<u64>,
    /// The growth of the target's memory while the connections were opened and nothing was sent, bytes per connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_rss_bytes_per_connection: Option<f64>,
}

impl Phase {
    /// The end of the load, seconds after the start of the run. Answers may arrive later.
    pub fn ends_s(&self) -> f64 {
        self.starts_s + self.warmup_s + self.duration_s
    }
}

/// The steady part of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Whether a steady part was found.
    pub found: bool,
    /// Its start, seconds after the start of the phase.
    pub from_s: f64,
    /// The change of the completed operations per second over the part, as a share of their mean.
    pub drift: f64,
    /// The answer as a sentence.
    pub sentence: String,
}
