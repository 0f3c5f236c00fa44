//! The observation of a target: its version, settings, counters and machine.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::expression::Increase;
use crate::value::Value;

/// Everything that rules read. Missing values are allowed: a rule that needs one is reported as undecided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// The variant of the product, such as `mariadb` for the product `mysql`.
    pub variant: String,
    /// The version as the target prints it.
    pub version: Option<String>,
    /// The role, for products that have roles.
    pub role: Option<String>,
    /// The settings by name, in the units of their parameters.
    pub settings: BTreeMap<String, Value>,
    /// The facts by name, in the units of the product's facts.
    pub facts: BTreeMap<String, Value>,
    /// The counters at two moments.
    pub counters: BTreeMap<String, Increase>,
    /// The things that have settings of their own, by kind: for example the block devices.
    pub groups: BTreeMap<String, Vec<Group>>,
    /// The values that the target does not show.
    pub hidden: Vec<Hidden>,
    /// The parameters that have their default, with the thing of a group.
    pub unset: BTreeSet<(Option<String>, String)>,
}

/// A value that a target does not show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Hidden {
    /// The name of the setting, fact or counter.
    pub name: String,
    /// The reason, with the grant or the command that shows the value.
    pub reason: String,
}

impl Hidden {
    /// A hidden value.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}

/// A thing that has settings of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// Its name, such as `sda`.
    pub name: String,
    pub settings: BTreeMap<String, Value>,
}
