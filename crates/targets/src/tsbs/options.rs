//! Keys of a scenario.

use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use serde::Deserialize;

use super::lines::Times;
use super::queries::NAMES;
use crate::limits::{TIMESERIES_COUNT_MAX, TIMESERIES_POINTS_MAX, TSBS_HOURS_MAX, TSBS_START_MS_MAX};

/// The name of the operation that writes.
pub(super) const LOAD: &str = "load";
/// 2016-01-01T00:00:00Z, the first time of TSBS's data.
const START_MS: i64 = 1_451_606_400_000;
const HOUR_MS: u64 = 3_600_000;

/// Keys of `[dataset]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetOptions {
    /// The number of trucks, before the scale.
    #[serde(default = "hundred")]
    pub(super) trucks: u64,
    /// Hours of history.
    #[serde(default = "day")]
    pub(super) hours: u64,
    /// The time between two reports of a truck, milliseconds.
    #[serde(default = "ten_seconds")]
    pub(super) interval_ms: i64,
    /// The time of the first reports, milliseconds since the epoch.
    #[serde(default = "start")]
    pub(super) start_ms: i64,
    /// Lines of a request.
    #[serde(default = "ten_thousand")]
    pub(super) lines_per_request: u64,
    /// Whether the queries are those of TSBS where ours differ.
    #[serde(default)]
    pub(super) compat: bool,
    #[serde(default = "tsbs")]
    pub(super) database: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationOptions {
    #[serde(rename = "about")]
    _about: Option<String>,
}

fn hundred() -> u64 {
    100
}

fn day() -> u64 {
    24
}

fn ten_seconds() -> i64 {
    10_000
}

fn start() -> i64 {
    START_MS
}

fn ten_thousand() -> u64 {
    10_000
}

fn tsbs() -> String {
    "tsbs".to_owned()
}

impl DatasetOptions {
    pub(super) fn read(scenario: &Scenario) -> Result<Self, String> {
        let options: Self = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let wrong = |what: String| Err(format!("[dataset]: {what}"));
        if !(1..=TIMESERIES_COUNT_MAX).contains(&options.trucks) {
            return wrong(format!("trucks = {}; use 1 to {TIMESERIES_COUNT_MAX}", options.trucks));
        }
        if !(1..=TIMESERIES_POINTS_MAX).contains(&options.lines_per_request) {
            let lines = options.lines_per_request;
            return wrong(format!("lines_per_request = {lines}; use 1 to {TIMESERIES_POINTS_MAX}"));
        }
        if !(1..=TSBS_HOURS_MAX).contains(&options.hours) {
            return wrong(format!("hours = {}; use 1 to {TSBS_HOURS_MAX}", options.hours));
        }
        if !(1..=HOUR_MS.cast_signed()).contains(&options.interval_ms) {
            return wrong(format!("interval_ms = {}; use 1 to {HOUR_MS}", options.interval_ms));
        }
        if !(0..=TSBS_START_MS_MAX).contains(&options.start_ms) {
            return wrong(format!("start_ms = {}; use 0 to {TSBS_START_MS_MAX}", options.start_ms));
        }
        if options.database.is_empty() || options.database.chars().any(char::is_control) {
            return wrong("`database` must be a name".to_owned());
        }
        Ok(options)
    }

    pub(super) fn times(&self) -> Times {
        let steps = (self.hours * HOUR_MS).div_ceil(self.interval_ms.unsigned_abs());
        Times { start_ms: self.start_ms, interval_ms: self.interval_ms, steps }
    }
}

/// Checks operations and phases.
pub(super) fn check(scenario: &Scenario) -> Result<(), String> {
    for operation in &scenario.operations {
        operation.options::<OperationOptions>()?;
        if operation.name != LOAD && !NAMES.contains(&operation.name.as_str()) {
            let place = operation.place();
            return Err(format!("{place}: use {LOAD}, or a query: {}", NAMES.join(", ")));
        }
    }
    scenario.check_phases(check_phase)
}

/// The only mix of a phase.
pub(super) fn mix(phase: &Phase) -> &Mix {
    &phase.mixes[0]
}

/// Whether a phase writes.
pub(super) fn is_load(phase: &Phase) -> bool {
    mix(phase).operations == [LOAD]
}

fn check_phase(phase: &Phase) -> Result<(), String> {
    let [mix] = &phase.mixes[..] else {
        return Err("all clients do the same: leave out the mixes".to_owned());
    };
    if mix.arrival != Arrival::Closed {
        return Err("each client waits for its answer: arrival = \"closed\"".to_owned());
    }
    match (is_load(phase), phase.duration) {
        (true, Some(_)) => {
            return Err("it writes all data: leave out `duration`".to_owned());
        }
        (false, None) => {
            return Err("it has no `duration`, for which each query is asked".to_owned());
        }
        _ => {}
    }
    if !is_load(phase) && mix.operations.iter().any(|name| name == LOAD) {
        return Err(format!("a phase asks queries, or has operations = [\"{LOAD}\"] alone"));
    }
    mix.no_options("its options")
}
