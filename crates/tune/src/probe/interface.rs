//! What a probe is, and what it returns.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::observation::Group;
use crate::value::Value;

/// Reads a running server.
pub trait Probe {
    /// What the server is.
    fn identity(&self) -> &Identity;

    /// Reads settings, facts and counters at this moment.
    fn sample(&mut self) -> Result<Sample, ProbeError>;
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The product whose rules apply, such as `mysql`.
    pub product: &'static str,
    /// The target in words.
    pub title: String,
    /// The variant of the product, such as `mariadb`.
    pub variant: String,
    /// The version as the server prints it.
    pub version: Option<String>,
    /// The role, for products that have roles.
    pub role: Option<String>,
}

/// What a probe reads at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// The settings by name, in the units of their parameters.
    pub settings: BTreeMap<String, Value>,
    /// The facts by name.
    pub facts: BTreeMap<String, Value>,
    /// The counters.
    pub counters: BTreeMap<String, f64>,
    /// The things that have settings of their own, by kind.
    pub groups: BTreeMap<String, Vec<Group>>,
    /// The seconds since the counters were zero.
    pub uptime_s: Option<f64>,
    /// The values that the server does not show.
    pub hidden: Vec<Hidden>,
}

/// A value that a server does not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// The name of the setting, fact or counter.
    pub name: String,
    /// The reason.
    pub reason: String,
}

impl Hidden {
    /// A value with the reason for which it is not known.
    pub(super) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), reason: reason.into() }
    }
}

/// A server that cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProbeError(pub String);
