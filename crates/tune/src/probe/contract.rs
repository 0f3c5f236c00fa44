//! The interface of probes.

use std::collections::BTreeMap;

use super::error::ProbeError;
use crate::observation::{Group, Hidden};
use crate::value::Value;

/// A connection to a target. It only reads.
pub trait Probe {
    /// The identity of the target.
    fn identity(&self) -> &Identity;

    /// Reads settings, facts, groups and counters now.
    fn sample(&mut self) -> Result<Sample, ProbeError>;
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
}
