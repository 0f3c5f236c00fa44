//! Gates, checks and faults: they decide whether a run is valid.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::number::short;

/// A rule that was fixed before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Name: `sent_share`, `lag_p99`.
    pub name: String,
    /// The measured value.
    pub value: f64,
    /// The allowed limit.
    pub limit: f64,
    /// Unit of both, empty for shares.
    pub unit: String,
    /// The side of the limit that passes.
    pub rule: Rule,
    /// Whether the gate passed.
    pub passed: bool,
    /// The meaning of the value, and what to do if the gate fails.
    pub explanation: String,
}

/// The side of a limit that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The value must be at least the limit.
    AtLeast,
    /// The value must be at most the limit.
    AtMost,
}

impl Gate {
    /// Checks a value. NaN fails.
    pub fn new(name: &str, value: f64, rule: Rule, limit: f64, unit: &str, explanation: &str) -> Self {
        let passed = match rule {
            Rule::AtLeast => value >= limit,
            Rule::AtMost => value <= limit,
        };
        let (name, unit, explanation) = (name.to_owned(), unit.to_owned(), explanation.to_owned());
        Self { name, value, limit, unit, rule, passed, explanation }
    }

    /// The value, the limit and their meaning.
    pub fn sentence(&self) -> String {
        let side = match self.rule {
            Rule::AtLeast => "at least",
            Rule::AtMost => "at most",
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let (value, limit) = (short(self.value), short(self.limit));
        format!("{} is {value}{unit}, it must be {side} {limit}{unit}: {}", self.name, self.explanation)
    }
}

/// A comparison with an expected value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The compared fact: `rows stored`.
    pub what: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub found: String,
    /// Whether they are equal.
    pub passed: bool,
}

impl Check {
    /// Compares two values by their texts.
    pub fn equal(what: String, expected: impl Display, found: impl Display) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        let passed = expected == found;
        Self { what, expected, found, passed }
    }
}

/// A failure at a moment of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Seconds after the start of the run.
    pub at_s: f64,
    /// The event: `the server closed all connections`.
    pub what: String,
}
