//! Scenario files: they define a measurement, in one TOML format for all drivers.
//!
//! ```toml
//! [scenario]
//! name = "example"
//! about = "one sentence"
//! driver = "redis"
//!
//! [target]
//! url = "redis://127.0.0.1:6379"
//!
//! [dataset]            # keys of the driver
//! keys = [0, 9999]
//!
//! [[operation]]
//! name = "get"
//! weight = 3
//! command = "GET __key__"
//!
//! [[phase]]
//! name = "run"
//! arrival = "poisson"
//! rate = 10_000
//! connections = 50
//! warmup = "5s"
//! duration = "30s"
//! ```
//!
//! An unknown key is an error with a suggestion. The runner passes keys that are not its own to the driver, which refuses
//! those that it does not know. Parsing is pure: it uses no file, no clock and no network, except for `builtin` and
//! [`Scenario::load`], and asks the machine only for the number of its processors.

mod alias;
mod builtin;
mod keys;
mod origin;
mod overrides;
mod phase;
mod processors;
mod typed;
mod written_duration;

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use crate::error::{Error, Result};
use crate::limits::SCALE_MAX;
use crate::machine;
use crate::objective::Objective;
use crate::result::ALL;

pub use alias::{ALIASES, Alias};
pub use builtin::{BUILTIN, Builtin};
pub use origin::Origin;
pub use phase::duration;
pub use phase::{Arrival, Mix, Phase, PhaseKind};
pub use typed::{no_keys, typed};
pub use written_duration::parse_duration;

/// The keys of `[target]` that the runner knows. All others belong to the driver.
pub const TARGET_KEYS: &[&str] = &["url", "pid"];
/// The same for `[[operation]]`.
const OPERATION_KEYS: &[&str] = &["name", "weight"];

/// A scenario. The runner has checked its own keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name, description, driver and the like.
    pub head: Head,
    /// The server under test. The command line can override it.
    pub target: Target,
    /// The data set, with the driver's keys.
    pub dataset: Table,
    pub operations: Vec<Operation>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// The objective for response times: of each run, and of a capacity search.
    pub slo: Option<Objective>,
    /// Limits that make a run invalid.
    pub gates: Gates,
    /// The effective file, with defaults and overrides.
    pub effective: Table,
    /// The origin of the scenario.
    pub origin: Origin,
}

/// `[scenario]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub name: String,
    /// A description in one sentence.
    pub about: String,
    /// The driver: `mqtt`, `redis`.
    pub driver: String,
    /// The article or table that it reproduces.
    pub article: Option<String>,
    /// The seed of schedules and data.
    #[serde(default = "one")]
    pub seed: u64,
    /// The size of data and of counted requests, as a share of the original.
    #[serde(default = "whole")]
    pub scale: f64,
}

fn one() -> u64 {
    1
}

fn whole() -> f64 {
    1.0
}

/// `[target]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    pub url: String,
    /// The process to sample, if it runs on this machine.
    pub pid: Option<u32>,
    /// The keys for the driver.
    pub driver_keys: Table,
}

#[derive(Debug, Default, Deserialize)]
struct TargetCommon {
    #[serde(default)]
    url: String,
    pid: Option<u32>,
}

/// `[[operation]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The name, which is a class in results.
    pub name: String,
    /// The relative frequency.
    pub weight: u32,
    /// The keys for the driver.
    pub driver_keys: Table,
}

/// `[gates]`: limits of a valid run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gates {
    /// The smallest share of planned operations that must be sent.
    pub sent_share_min: f64,
    /// The largest p99 of the generator's lag, microseconds.
    pub lag_p99_us_max: f64,
    /// The largest share of operations that may fail.
    pub error_share_max: f64,
    /// The smallest share of requested items that must exist.
    pub hit_share_min: f64,
    /// The largest share of a core that a generator thread may use in an open loop.
    pub generator_core_max: f64,
    /// The largest share of the processors' time that the hypervisor may take.
    pub steal_share_max: f64,
    /// The largest Anderson-Darling statistic of the gaps between random sends.
    pub arrival_max: f64,
}

impl Gates {
    /// Checks the limits. A limit that is NaN would pass everything or nothing.
    fn check(&self) -> std::result::Result<(), String> {
        let limits = [
            ("sent_share_min", self.sent_share_min),
            ("lag_p99_us_max", self.lag_p99_us_max),
            ("error_share_max", self.error_share_max),
            ("hit_share_min", self.hit_share_min),
            ("generator_core_max", self.generator_core_max),
            ("steal_share_max", self.steal_share_max),
            ("arrival_max", self.arrival_max),
        ];
        match limits.into_iter().find(|(_, limit)| !(*limit >= 0.0 && limit.is_finite())) {
            Some((name, limit)) => {
                Err(format!("[gates] {name} = {limit}: it must be a number of zero or more"))
            }
            None => Ok(()),
        }
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            sent_share_min: 0.99,
            lag_p99_us_max: 5_000.0,
            error_share_max: 0.0,
            hit_share_min: 0.0,
            generator_core_max: 0.9,
            steal_share_max: 0.01,
            arrival_max: crate::statistics::arrivals::POISSON_MAX,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: Head,
    #[serde(default)]
    target: Table,
    #[serde(default)]
    dataset: Table,
    #[serde(default)]
    operation: Vec<Table>,
    phase: Vec<Table>,
    slo: Option<Slo>,
    #[serde(default)]
    gates: Gates,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slo {
    response: String,
}

impl Slo {
    fn read(self) -> std::result::Result<Objective, String> {
        self.response.parse().map_err(|error| format!("[slo] response: {error}"))
    }
}

#[derive(Debug, Deserialize)]
struct OperationCommon {
    name: String,
    #[serde(default = "one_u32")]
    weight: u32,
}

fn one_u32() -> u32 {
    1
}

impl Builtin {
    /// Parses the text of the scenario.
    pub fn scenario(&self) -> std::result::Result<Scenario, String> {
        Scenario::parse(self.text, &[])
    }
}

impl Scenario {
    /// Loads a built-in scenario by its name or an alias, or a file, with overrides `path.to.key=value`.
    pub fn load(name_or_file: &str, sets: &[String]) -> Result<Self> {
        let path = Path::new(name_or_file);
        let wrong = |what: String| Error::Scenario { path: path.to_owned(), what };
        let alias = Alias::named(name_or_file);
        let text = match Builtin::named(alias.map_or(name_or_file, |alias| alias.scenario)) {
            Some(builtin) => builtin.text.to_owned(),
            None if path.extension().is_some() || path.exists() => {
                std::fs::read_to_string(path).map_err(Error::file(path))?
            }
            None => return Err(Error::Options(builtin::unknown(name_or_file))),
        };
        let of_alias = alias.into_iter().flat_map(|alias| alias.sets).map(|set| (*set).to_owned());
        let all: Vec<String> = of_alias.chain(sets.iter().cloned()).collect();
        let mut scenario = Self::parse(&text, &all).map_err(wrong)?;
        scenario.origin = Origin { name: name_or_file.to_owned(), sets: sets.to_vec() };
        Ok(scenario)
    }

    /// Parses the text of a file. The error names the place and suggests a correction.
    pub fn parse(text: &str, sets: &[String]) -> std::result::Result<Self, String> {
        let mut effective: Table = toml::from_str(text).map_err(|e| e.to_string())?;
        for set in sets {
            overrides::apply(&mut effective, set)?;
        }
        processors::count(&mut effective, machine::processors())?;
        let file: File = typed(effective.clone(), "the file", &[])?;
        let operations =
            file.operation.into_iter().map(Operation::read).collect::<std::result::Result<Vec<_>, _>>()?;
        let names: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
        let phases = file
            .phase
            .into_iter()
            .map(|table| Phase::read(table, &names))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let origin = Origin { name: file.scenario.name.clone(), sets: sets.to_vec() };
        let scenario = Self {
            head: file.scenario,
            target: Target::read(file.target)?,
            dataset: file.dataset,
            operations,
            phases,
            slo: file.slo.map(|slo| slo.read()).transpose()?,
            gates: file.gates,
            effective,
            origin,
        };
        scenario.check()?;
        Ok(scenario)
    }

    /// The factor for rates. In driver `tcp`, rates grow with the connections; elsewhere the scale applies only to
    /// data.
    pub fn rate_scale(&self) -> f64 {
        if self.head.driver == "tcp" { self.head.scale } else { 1.0 }
    }

    fn check(&self) -> std::result::Result<(), String> {
        if !(self.head.scale > 0.0 && self.head.scale <= SCALE_MAX) {
            return Err(format!(
                "scale = {}: it must be a number above zero, at most {SCALE_MAX}",
                self.head.scale
            ));
        }
        self.gates.check()?;
        if self.phases.is_empty() {
            return Err("there is no [[phase]]".to_owned());
        }
        if self.operations.iter().any(|operation| operation.name == ALL) {
            return Err(format!(
                "an operation is called `{ALL}`, the name of their sum in results; rename it"
            ));
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in self.phases.iter().map(|p| &p.name) {
            if !seen.insert(name) {
                return Err(format!("two phases are called `{name}`; their names are those of the results"));
            }
        }
        Ok(())
    }

    /// Converts every open loop into a closed one, for comparison with tools that have only closed loops. The window is
    /// that of the file.
    pub fn close(&mut self) {
        for phase in &mut self.phases {
            phase.busy_poll_us = 0;
            for mix in phase.mixes.iter_mut().filter(|mix| mix.arrival.is_open_loop()) {
                (mix.arrival, mix.timer_us) = (Arrival::Closed, 0);
            }
        }
        let phases = self.effective.get_mut("phase").and_then(toml::Value::as_array_mut);
        for phase in phases.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
            close_table(phase);
            let mixes = phase.get_mut("mix").and_then(toml::Value::as_array_mut);
            for mix in mixes.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
                mix.remove("timer_us");
                // A mix without its own arrival has that of its phase.
                if mix.contains_key("arrival") {
                    close_table(mix);
                }
            }
        }
    }

    /// An operation by its name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// The class number of an operation.
    pub fn class_of(&self, name: &str) -> u16 {
        let index = self.operations.iter().position(|operation| operation.name == name).unwrap_or(0);
        u16::try_from(index).unwrap_or(u16::MAX)
    }

    /// `count` at the scenario's scale, at least one.
    pub fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.head.scale).ceil() as u64).max(1)
    }
}

fn close_table(table: &mut Table) {
    table.remove("timer_us");
    table.remove("busy_poll_us");
    let kept = ["closed", "idle", "reopen"];
    if !table.get("arrival").and_then(toml::Value::as_str).is_some_and(|arrival| kept.contains(&arrival)) {
        table.insert("arrival".to_owned(), toml::Value::String("closed".to_owned()));
    }
}

impl Target {
    fn read(mut table: Table) -> std::result::Result<Self, String> {
        let mut common = Table::new();
        for key in TARGET_KEYS {
            if let Some(value) = table.remove(*key) {
                common.insert((*key).to_owned(), value);
            }
        }
        let common: TargetCommon = typed(common, "[target]", &[])?;
        Ok(Self { url: common.url, pid: common.pid, driver_keys: table })
    }
}

impl Operation {
    fn read(mut table: Table) -> std::result::Result<Self, String> {
        let mut common = Table::new();
        for key in OPERATION_KEYS {
            if let Some(value) = table.remove(*key) {
                common.insert((*key).to_owned(), value);
            }
        }
        let common: OperationCommon = typed(common, "[[operation]]", &[])?;
        Ok(Self { name: common.name, weight: common.weight, driver_keys: table })
    }
}

#[cfg(test)]
mod tests;
