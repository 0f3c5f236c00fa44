//! `seconds.csv` and `telemetry.csv`: the course of a run over time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::log::Clock;
use crate::statistics::Distribution;

/// One second of one class of operation: a line of `seconds.csv`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLine {
    /// Name of the phase.
    pub phase: String,
    /// Name of the class; `all` for the sum of all classes.
    pub operation: String,
    /// The start, seconds after the start of the run.
    pub second: u64,
    /// The length, seconds: 1, except for results of tools that print less often.
    pub length_s: f64,
    /// Operations sent in this second.
    pub sent: u64,
    /// Operations answered with success in this second.
    pub completed: u64,
    /// Failures in this second.
    pub errors: u64,
    /// Answers that contain the requested item.
    pub hits: u64,
    /// Answers that do not.
    pub misses: u64,
    /// Bytes sent and received.
    pub bytes: u64,
    /// Response time of operations answered in this second, microseconds.
    pub response_p50_us: Option<f64>,
    /// As above.
    pub response_p99_us: Option<f64>,
    /// As above.
    pub response_max_us: Option<f64>,
    /// Service time of operations answered in this second, microseconds.
    pub service_p50_us: Option<f64>,
    /// As above.
    pub service_p99_us: Option<f64>,
    /// Generator lag of operations sent in this second, microseconds.
    pub lag_p99_us: Option<f64>,
}

impl SecondLine {
    /// Sets the quantiles of a clock.
    pub(crate) fn set(&mut self, clock: Clock, distribution: &Distribution) {
        let at = |q| (!distribution.is_empty()).then(|| distribution.quantile_us(q) as f64);
        match clock {
            Clock::Response => {
                self.response_p50_us = at(0.5);
                self.response_p99_us = at(0.99);
                self.response_max_us = at(1.0);
            }
            Clock::Service => {
                self.service_p50_us = at(0.5);
                self.service_p99_us = at(0.99);
            }
            Clock::Lag => self.lag_p99_us = at(0.99),
        }
    }

    /// Adds the counts of the same second of another process or class.
    pub(crate) fn add_counts(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.errors += other.errors;
        self.hits += other.hits;
        self.misses += other.misses;
        self.bytes += other.bytes;
    }
}

/// Samples of target and machine each second: named series with values at seconds after the start of the run. Names end
/// with the unit: `target.rss_bytes`, `target.cpu_percent`, `mysql.Com_select_per_s`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Telemetry {
    series: BTreeMap<String, BTreeMap<u64, f64>>,
}

impl Telemetry {
    pub fn add(&mut self, second: u64, name: &str, value: f64) {
        match self.series.get_mut(name) {
            Some(series) => {
                series.insert(second, value);
            }
            None => {
                self.series.insert(name.to_owned(), BTreeMap::from([(second, value)]));
            }
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.series.keys().map(String::as_str)
    }

    /// The seconds and values of a series, ascending; empty for an unknown name.
    pub fn series(&self, name: &str) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.series.get(name).into_iter().flatten().map(|(second, value)| (*second, *value))
    }

    /// Adds the series of another process. Where both have a value, the other's replaces it.
    pub fn merge(&mut self, other: &Self) {
        for (name, series) in &other.series {
            self.series.entry(name.clone()).or_default().extend(series);
        }
    }

    /// One column per series, and one line per second with any sample. Missing samples are empty cells.
    pub(crate) fn to_csv(&self) -> csv::Result<Vec<u8>> {
        let mut seconds: Vec<u64> = self.series.values().flat_map(BTreeMap::keys).copied().collect();
        seconds.sort_unstable();
        seconds.dedup();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(std::iter::once("second").chain(self.names()))?;
        for second in seconds {
            let cells = self
                .series
                .values()
                .map(|series| series.get(&second).map(f64::to_string).unwrap_or_default());
            writer.write_record(std::iter::once(second.to_string()).chain(cells))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }

    /// Parses the output of `to_csv`.
    pub(crate) fn from_csv(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(bytes);
        let names = reader.headers().map_err(|error| error.to_string())?.clone();
        let mut telemetry = Self::default();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let second = record.get(0).unwrap_or_default();
            let second = second.parse().map_err(|_| format!("`{second}` is not a second"))?;
            for (name, cell) in names.iter().zip(&record).skip(1).filter(|(_, cell)| !cell.is_empty()) {
                let value = cell.parse().map_err(|_| format!("`{cell}` in column {name} is not a number"))?;
                telemetry.add(second, name, value);
            }
        }
        Ok(telemetry)
    }
}

/// All lines as CSV.
pub(crate) fn seconds_to_csv(lines: &[SecondLine]) -> csv::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Parses the output of `seconds_to_csv`.
pub(crate) fn seconds_from_csv(bytes: &[u8]) -> Result<Vec<SecondLine>, String> {
    csv::Reader::from_reader(bytes)
        .deserialize()
        .map(|line| line.map_err(|error| error.to_string()))
        .collect()
}
