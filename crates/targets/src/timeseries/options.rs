//! Keys of a scenario for the drivers of time series.

use std::path::PathBuf;

use clients::target_url::{ASKED, TargetUrl};
use load::scenario::{Arrival, Mix, Phase, Scenario, TARGET_KEYS, typed};
use serde::Deserialize;

use super::timelines::Timelines;
use crate::limits::{TIMESERIES_COUNT_MAX, TIMESERIES_POINTS_MAX, TIMESERIES_TAGS_MAX};

/// The protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// `/api/put`.
    OpenTsdb,
    /// `/write`.
    Influx,
    /// `/api/v1/write`.
    Prometheus,
}

/// Keys of `[dataset]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatasetOptions {
    /// Points of a request.
    #[serde(default = "five_hundred")]
    pub(crate) points_per_request: u64,
    /// The number of metrics, at most that of the timelines.
    #[serde(default = "hundred")]
    pub(crate) metrics: u64,
    /// Tags of each timeline.
    #[serde(default = "one")]
    pub(crate) tags_per_series: u32,
    /// The time between two points of a timeline, milliseconds.
    #[serde(default = "thousand")]
    pub(crate) interval_ms: i64,
    /// The time of the first points, milliseconds since the epoch; `None` for the beginning of yesterday (UTC).
    pub(crate) start_ms: Option<i64>,
    /// Timelines whose points are read back and compared one by one.
    #[serde(default = "hundred")]
    pub(crate) sample: u64,
    /// Whether the points of the cells before stay.
    #[serde(default)]
    pub(crate) accumulate: bool,
    /// The database of driver `influx`.
    #[serde(default = "hitsdb")]
    pub(crate) database: String,
}

fn five_hundred() -> u64 {
    500
}

fn hundred() -> u64 {
    100
}

fn thousand() -> i64 {
    1_000
}

fn one() -> u32 {
    1
}

fn hitsdb() -> String {
    "hitsdb".to_owned()
}

impl DatasetOptions {
    pub(crate) fn read(scenario: &Scenario) -> Result<Self, String> {
        let options: Self = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let wrong = |what: String| Err(format!("[dataset]: {what}"));
        if !(1..=TIMESERIES_POINTS_MAX).contains(&options.points_per_request) {
            return wrong(format!(
                "points_per_request = {}; use 1 to {TIMESERIES_POINTS_MAX}",
                options.points_per_request
            ));
        }
        if !(1..=TIMESERIES_TAGS_MAX).contains(&options.tags_per_series) {
            return wrong(format!(
                "tags_per_series = {}; use 1 to {TIMESERIES_TAGS_MAX}",
                options.tags_per_series
            ));
        }
        if options.metrics == 0 || options.interval_ms <= 0 || options.sample == 0 {
            return wrong("`metrics`, `interval_ms` and `sample` must be above zero".to_owned());
        }
        if options.start_ms.is_some_and(|start| start < 0) {
            return wrong("`start_ms` must not be before 1970".to_owned());
        }
        if options.database.is_empty() || options.database.chars().any(char::is_control) {
            return wrong("`database` must be a name".to_owned());
        }
        Ok(options)
    }

    /// The timelines of a cell.
    pub(crate) fn timelines(&self, count: u64, tag_value: String, start_ms: i64, seed: u64) -> Timelines {
        Timelines {
            count,
            metrics: self.metrics.min(count),
            tags: self.tags_per_series,
            tag_value,
            start_ms,
            interval_ms: self.interval_ms,
            seed,
        }
    }
}

/// Keys of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PhaseOptions {
    /// The number of timelines, before the scale.
    pub(crate) timelines: u64,
    /// The number of points of each timeline at which the phase ends.
    pub(crate) cycles: Option<u64>,
    /// Whether the phase writes on where the one before it has ended.
    #[serde(default)]
    pub(crate) continues: bool,
}

impl PhaseOptions {
    pub(crate) fn read(phase: &Phase) -> Result<Self, String> {
        let [mix] = &phase.mixes[..] else {
            return Err("all clients do the same: leave out the mixes".to_owned());
        };
        let options: Self = mix.options(&toml::Table::new(), "its options")?;
        options.check(phase, mix)?;
        Ok(options)
    }

    fn check(self, phase: &Phase, mix: &Mix) -> Result<(), String> {
        if !(1..=TIMESERIES_COUNT_MAX).contains(&self.timelines) {
            return Err(format!("timelines = {}; use 1 to {TIMESERIES_COUNT_MAX}", self.timelines));
        }
        if self.cycles == Some(0) {
            return Err("`cycles` must be above zero".to_owned());
        }
        if phase.duration.is_none() && self.cycles.is_none() {
            return Err("it has neither `duration` nor `cycles` and would never end".to_owned());
        }
        if mix.window > 1 {
            return Err(
                "`window` must be 1: a client sends a request after the answer to the one before".to_owned()
            );
        }
        if matches!(mix.arrival, Arrival::Idle | Arrival::Reopen | Arrival::Steps | Arrival::Staircase) {
            return Err("clients write: arrival = \"closed\", \"poisson\" or \"fixed\"".to_owned());
        }
        Ok(())
    }
}

/// Keys of `[target]` besides the address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetOptions {
    /// The address to read back from, if it is another one.
    pub(crate) http: Option<String>,
    /// A token, in place of user and password.
    pub(crate) token: Option<String>,
    /// The user, if the address has none.
    pub(crate) user: Option<String>,
    /// The password, if the address has none.
    pub(crate) password: Option<String>,
    /// The directory of a running server, whose size is measured.
    pub(crate) data: Option<PathBuf>,
    /// A shell command that starts the server on the directory `{data}`.
    pub(crate) command: Option<String>,
}

impl TargetOptions {
    pub(crate) fn read(scenario: &Scenario) -> Result<Self, String> {
        let options: Self = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        if let Some(url) = &options.http {
            TargetUrl::parse(url, &ASKED).map_err(|what| format!("target.http: {what}"))?;
        }
        if options.token.is_some() && (options.user.is_some() || options.password.is_some()) {
            return Err("[target]: give a token, or user and password".to_owned());
        }
        if options.password.is_some() && options.user.is_none() {
            return Err("[target]: a password needs a user".to_owned());
        }
        if options.data.is_some() && options.command.is_some() {
            return Err(
                "[target]: a server that the run starts has a directory of its own: leave out `data`"
                    .to_owned(),
            );
        }
        if options.command.as_ref().is_some_and(|command| !command.contains("{data}")) {
            return Err("target.command: write {data} in place of the directory of the server".to_owned());
        }
        if scenario.target.url.is_empty() && options != Self::default() {
            return Err(
                "the keys of [target] describe a server that is not ours to start: give target.url too"
                    .to_owned(),
            );
        }
        Ok(options)
    }
}
