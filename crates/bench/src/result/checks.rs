//! What a run is judged by: gates, checks and faults.

use serde::{Deserialize, Serialize};

use super::number::short;

/// A rule fixed beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Name: `sent_share`, `lag_p99`.
    pub name: String,
    /// What was found.
    pub value: f64,
    /// What is allowed.
    pub limit: f64,
    /// Unit of both, empty for shares.
    pub unit: String,
    /// Which side of the limit is good.
    pub rule: Rule,
    /// Whether it passed.
    pub passed: bool,
    /// What the value means and what to do when it fails.
    pub explanation: String,
}

/// Which side of a limit is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The value must not be below the limit.
    AtLeast,
    /// The value must not be above the limit.
    AtMost,
}

impl Gate {
    /// Judges a value. A value that is not a number fails.
    pub fn new(name: &str, value: f64, rule: Rule, limit: f64, unit: &str, explanation: &str) -> Self {
        let passed = match rule {
            Rule::AtLeast => value >= limit,
            Rule::AtMost => value <= limit,
        };
        let (name, unit, explanation) = (name.to_owned(), unit.to_owned(), explanation.to_owned());
        Self { name, value, limit, unit, rule, passed, explanation }
    }

    /// What was found, what is allowed, and what it means.
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

/// Something that was compared with what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was compared: `rows stored`.
    pub what: String,
    /// What it must be.
    pub expected: String,
    /// What it is.
    pub found: String,
    /// Whether they agree.
    pub passed: bool,
}

/// Something that went wrong at a moment of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Seconds after the begin of the run.
    pub at_s: f64,
    /// What happened: `the server closed all connections`.
    pub what: String,
}
