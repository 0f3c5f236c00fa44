//! The interface of probes.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{ProbeError, StatementError};
use crate::observation::{Group, Hidden};
use crate::statement::Statement;
use crate::value::Value;

/// A connection to a target. Only [`Probe::carry_out`] changes something.
pub trait Probe {
    /// The identity of the target.
    fn identity(&self) -> &Identity;

    /// Reads settings, facts, groups and counters now.
    fn sample(&mut self) -> Result<Sample, ProbeError>;

    /// Reads the settings and groups now. A probe whose sample costs the target work leaves the rest out.
    fn sample_settings(&mut self) -> Result<Sample, ProbeError> {
        self.sample()
    }

    /// Carries out one step of a change.
    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        Err(StatementError::Other(statement.clone()))
    }

    /// The start of the process that answers. `None`: the target does not tell.
    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        Ok(None)
    }
}

/// The start of a process. Two starts that differ mean that it has started again.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// A text that each start makes again.
    Id(String),
    /// The moment, in seconds since 1970. It comes from an uptime in whole seconds.
    AtS(f64),
}

/// The largest difference of two moments of the same start, in seconds.
const SAME_START_S: f64 = 3.0;

impl Start {
    /// The start of a process that has run for this time, in seconds.
    pub(super) fn before_s(uptime_s: f64) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self::AtS(now.unwrap_or_default().as_secs_f64() - uptime_s)
    }

    /// Whether both are the same start.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AtS(one), Self::AtS(two)) => (one - two).abs() <= SAME_START_S,
            (one, two) => one == two,
        }
    }
}

/// The identity of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the rule file of the product, such as `mysql`.
    pub product: &'static str,
    /// The target in words, for the first line of a report.
    pub title: String,
    /// The variant of the product, such as `mariadb`.
    pub variant: String,
    /// The version as the target prints it.
    pub version: Option<String>,
    /// The role, for products that have roles.
    pub role: Option<String>,
}

/// The values of a target at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// The settings by name, in the units of the product's parameters.
    pub settings: BTreeMap<String, Value>,
    /// The facts by name, in the units of the product's facts.
    pub facts: BTreeMap<String, Value>,
    /// The counters by name.
    pub counters: BTreeMap<String, f64>,
    /// The things that have settings of their own, by kind.
    pub groups: BTreeMap<String, Vec<Group>>,
    /// The time since the target has started, in seconds. The counters count since then.
    pub uptime_s: Option<f64>,
    /// The values that the target does not show.
    pub hidden: Vec<Hidden>,
    /// The parameters that have their default, with the thing of a group: an undo removes their value.
    pub unset: BTreeSet<(Option<String>, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_in_whole_seconds_is_the_same_start() {
        assert!(Start::AtS(100.0).is_same(&Start::AtS(101.2)));
        assert!(!Start::AtS(100.0).is_same(&Start::AtS(104.0)));
        assert!(Start::Id("a".into()).is_same(&Start::Id("a".into())));
        assert!(!Start::Id("a".into()).is_same(&Start::Id("b".into())));
        assert!(!Start::Id("a".into()).is_same(&Start::AtS(1.0)));
    }
}
