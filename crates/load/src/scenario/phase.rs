//! `[[phase]]`: a load with its own result.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toml::Table;

use super::typed::{nearest, typed};
use super::written_duration::parse_duration;
use crate::limits::{BUSY_POLL_US_MAX, RATE_MAX, STEPS_MAX, TIMER_US_MAX};

/// The keys of a phase that the runner knows. All others belong to the driver.
pub(crate) const PHASE_KEYS: &[&str] = &[
    "name",
    "kind",
    "connections",
    "arrival",
    "rate",
    "rate_to",
    "steps",
    "timer_us",
    "window",
    "pause",
    "warmup",
    "duration",
    "drain",
    "threads",
    "tick_us",
    "busy_poll_us",
    "open_rate",
    "operations",
    "mix",
];
/// The same for a mix.
const MIX_KEYS: &[&str] =
    &["name", "connections", "arrival", "rate", "timer_us", "window", "pause", "operations"];

/// The purpose of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseKind {
    /// Creates the data set. Its figures are not the result.
    Load,
    /// Brings the server into its working state. Its figures are not the result.
    Warmup,
    /// The measured load.
    Run,
}

/// How operations arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// At random, with a rate.
    Poisson,
    /// At exact periods, with a rate.
    Fixed,
    /// After an answer.
    Closed,
    /// No operations.
    Idle,
    /// Poisson arrivals with rates from `rate` to `rate_to` in `steps` equal steps, each with its own result.
    Steps,
    /// The same up and down.
    Staircase,
    /// Connections are closed and opened again, at `rate` or all at once.
    Reopen,
}

impl Arrival {
    /// Whether operations arrive on a schedule independent of the server, over open connections.
    pub fn is_open_loop(self) -> bool {
        !matches!(self, Self::Closed | Self::Idle | Self::Reopen)
    }
}

/// `[[phase]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    pub name: String,
    /// The purpose.
    pub kind: PhaseKind,
    /// The first part, which is not measured.
    pub warmup: Duration,
    /// The measured part; `None` until every client has sent its requests.
    pub duration: Option<Duration>,
    /// The longest wait for outstanding answers.
    pub drain: Duration,
    /// Generator threads.
    pub threads: u32,
    /// See [`crate::engine::Plan::tick_us`].
    pub tick_us: u32,
    /// See [`crate::engine::Plan::busy_poll_us`].
    pub busy_poll_us: u32,
    /// The number of connections to open per second.
    pub open_rate: Option<f64>,
    /// The last rate of steps.
    pub rate_to: Option<f64>,
    /// The number of steps.
    pub steps: u32,
    /// The mixes of connections; one unless the file has several.
    pub mixes: Vec<Mix>,
}

/// Connections with the same operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    pub name: String,
    /// The number of connections.
    pub connections: u32,
    /// How operations arrive.
    pub arrival: Arrival,
    /// Operations per second of all its connections.
    pub rate: Option<f64>,
    /// Open loop: the period of a timer at whose ticks operations come due, microseconds; 0 without a timer.
    pub timer_us: u32,
    /// Closed: operations in flight per connection.
    pub window: usize,
    /// Closed loop: the pause of a connection after an answer.
    pub pause: Duration,
    /// The names of its operations.
    pub operations: Vec<String>,
    /// The keys for the driver.
    pub driver_keys: Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPhase {
    name: String,
    #[serde(default = "run")]
    kind: PhaseKind,
    #[serde(default, deserialize_with = "duration")]
    warmup: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    duration: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    drain: Option<Duration>,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default)]
    tick_us: u32,
    #[serde(default)]
    busy_poll_us: u32,
    open_rate: Option<f64>,
    rate_to: Option<f64>,
    #[serde(default = "one")]
    steps: u32,
    #[serde(default)]
    mix: Vec<Table>,
    #[serde(default = "one")]
    connections: u32,
    arrival: Option<Arrival>,
    rate: Option<f64>,
    #[serde(default)]
    timer_us: u32,
    #[serde(default = "one_window")]
    window: usize,
    #[serde(default, deserialize_with = "duration")]
    pause: Option<Duration>,
    operations: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMix {
    name: String,
    connections: Option<u32>,
    arrival: Option<Arrival>,
    rate: Option<f64>,
    timer_us: Option<u32>,
    window: Option<usize>,
    #[serde(default, deserialize_with = "duration")]
    pause: Option<Duration>,
    operations: Option<Vec<String>>,
}

fn run() -> PhaseKind {
    PhaseKind::Run
}

fn one() -> u32 {
    1
}

fn one_window() -> usize {
    1
}

/// Parses `"30s"`; a bare number is seconds.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a time is written like \"30s\" or \"500ms\", or is a number of seconds")]
    enum Written {
        Seconds(f64),
        Text(String),
    }
    let text = match Written::deserialize(deserializer)? {
        Written::Seconds(seconds) => seconds.to_string(),
        Written::Text(text) => text,
    };
    parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate <= RATE_MAX
}

fn check_rate(place: &str, name: &str, rate: Option<f64>) -> Result<(), String> {
    match rate {
        Some(rate) if !is_rate(rate) => Err(format!(
            "{place}: {name} = {rate}; it must be a number above zero, at most {RATE_MAX}, or left out"
        )),
        _ => Ok(()),
    }
}

fn split(mut table: Table, known: &[&str]) -> (Table, Table) {
    let common = known.iter().filter_map(|key| Some(((*key).to_owned(), table.remove(*key)?))).collect();
    (common, table)
}

impl Phase {
    /// Parses a phase. `operations` are the known names.
    pub(super) fn read(table: Table, operations: &[&str]) -> Result<Self, String> {
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or("?").to_owned();
        let place = format!("phase `{name}`");
        let (common, own) = split(table, PHASE_KEYS);
        let raw: RawPhase = typed(common, &place, &[])?;
        let base = Mix {
            name: raw.name.clone(),
            connections: raw.connections,
            arrival: raw.arrival.unwrap_or(Arrival::Poisson),
            rate: raw.rate,
            timer_us: raw.timer_us,
            window: raw.window,
            pause: raw.pause.unwrap_or_default(),
            operations: raw
                .operations
                .unwrap_or_else(|| operations.iter().map(|o| (*o).to_owned()).collect()),
            driver_keys: own,
        };
        let mixes = if raw.mix.is_empty() {
            vec![base]
        } else {
            raw.mix.into_iter().map(|table| base.refined(table, &place)).collect::<Result<Vec<_>, _>>()?
        };
        let phase = Self {
            name: raw.name,
            kind: raw.kind,
            warmup: raw.warmup.unwrap_or_default(),
            duration: raw.duration,
            drain: raw.drain.unwrap_or(Duration::from_secs(crate::limits::DRAIN_TIMEOUT_S)),
            threads: raw.threads,
            tick_us: raw.tick_us,
            busy_poll_us: raw.busy_poll_us,
            open_rate: raw.open_rate,
            rate_to: raw.rate_to,
            steps: raw.steps,
            mixes,
        };
        phase.check(&place, operations)?;
        Ok(phase)
    }

    fn check(&self, place: &str, operations: &[&str]) -> Result<(), String> {
        let stepped = |mix: &Mix| matches!(mix.arrival, Arrival::Steps | Arrival::Staircase);
        if self.mixes.iter().any(stepped) && (self.rate_to.is_none() || self.steps < 2) {
            return Err(format!("{place}: steps and staircases need `rate_to` and at least 2 `steps`"));
        }
        if self.steps > STEPS_MAX {
            return Err(format!("{place}: steps = {}; use at most {STEPS_MAX}", self.steps));
        }
        for (name, rate) in [("rate_to", self.rate_to), ("open_rate", self.open_rate)] {
            check_rate(place, name, rate)?;
        }
        if self.threads == 0 || self.threads > 64 {
            return Err(format!("{place}: threads = {}; use 1 to 64", self.threads));
        }
        if self.busy_poll_us > 0 {
            self.check_busy_poll(place)?;
        }
        for mix in &self.mixes {
            if mix.arrival.is_open_loop() && !mix.rate.is_some_and(is_rate) {
                return Err(format!(
                    "{place}: an open loop needs a `rate` above zero and at most {RATE_MAX} (or arrival = \"closed\")"
                ));
            }
            if mix.arrival == Arrival::Reopen {
                check_rate(place, "rate", mix.rate)?;
            }
            if mix.timer_us > 0 {
                self.check_timer(place, mix)?;
            }
            if mix.connections == 0 || mix.window == 0 {
                return Err(format!("{place}: connections and window must be above zero"));
            }
            for name in &mix.operations {
                if !operations.contains(&name.as_str()) {
                    let meant = nearest(name, operations.iter().copied());
                    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                    return Err(format!("{place}: there is no operation `{name}`{meant}"));
                }
            }
        }
        Ok(())
    }

    fn check_timer(&self, place: &str, mix: &Mix) -> Result<(), String> {
        if !mix.arrival.is_open_loop() {
            return Err(format!(
                "{place}: timer_us is for open loops; `{}` is not an open loop, leave it out there",
                mix.name
            ));
        }
        if mix.timer_us > TIMER_US_MAX {
            return Err(format!("{place}: timer_us = {}; use at most {TIMER_US_MAX}", mix.timer_us));
        }
        if self.tick_us > 0 {
            return Err(format!(
                "{place}: with timer_us operations come due together, with tick_us they are sent late together; \
                 leave one of both out"
            ));
        }
        Ok(())
    }

    fn check_busy_poll(&self, place: &str) -> Result<(), String> {
        let is_scheduled =
            |mix: &Mix| mix.arrival.is_open_loop() || (mix.arrival == Arrival::Reopen && mix.rate.is_some());
        if !self.mixes.iter().any(is_scheduled) {
            return Err(format!(
                "{place}: busy_poll_us is for operations on a schedule, and it has none; leave it out there"
            ));
        }
        if self.busy_poll_us > BUSY_POLL_US_MAX {
            return Err(format!(
                "{place}: busy_poll_us = {}; use at most {BUSY_POLL_US_MAX}",
                self.busy_poll_us
            ));
        }
        if self.tick_us > 0 {
            return Err(format!(
                "{place}: with busy_poll_us a thread does not sleep, with tick_us it sleeps between looks; leave one of both out"
            ));
        }
        Ok(())
    }

    /// The longest pause of its connections, milliseconds.
    pub fn pause_ms(&self) -> u32 {
        let longest = self.mixes.iter().map(|mix| mix.pause.as_millis()).max().unwrap_or(0);
        u32::try_from(longest).unwrap_or(u32::MAX)
    }

    /// The number of connections of all mixes.
    pub fn connections(&self) -> u32 {
        self.mixes.iter().map(|mix| mix.connections).sum()
    }
}

impl Mix {
    /// A mix of the file. Missing keys are those of the phase.
    fn refined(&self, table: Table, place: &str) -> Result<Self, String> {
        let (common, own) = split(table, MIX_KEYS);
        let raw: RawMix = typed(common, &format!("{place}, mix"), &[])?;
        if let Some(key) = own.keys().find(|key| PHASE_KEYS.contains(&key.as_str())) {
            return Err(format!(
                "{place}, mix `{}`: `{key}` is the same for all mixes of a phase: set it there",
                raw.name
            ));
        }
        let mut merged = self.driver_keys.clone();
        merged.extend(own);
        Ok(Self {
            name: raw.name,
            connections: raw.connections.unwrap_or(self.connections),
            arrival: raw.arrival.unwrap_or(self.arrival),
            rate: raw.rate.or(self.rate),
            timer_us: raw.timer_us.unwrap_or(self.timer_us),
            window: raw.window.unwrap_or(self.window),
            pause: raw.pause.unwrap_or(self.pause),
            operations: raw.operations.unwrap_or_else(|| self.operations.clone()),
            driver_keys: merged,
        })
    }
}
