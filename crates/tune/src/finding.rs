//! Findings: the results of rules.

use serde::Serialize;

use crate::observation::Hidden;
use crate::rules::{Effect, Manual, Restart, Risk};
use crate::unit::Unit;
use crate::value::Value;

/// A parameter that should be changed, and the reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    pub parameter: String,
    /// The thing that the parameter belongs to, if several have one: a block device, an index.
    pub subject: Option<String>,
    /// The unit of both values.
    pub unit: Unit,
    /// The observed value.
    pub current: Option<Value>,
    /// The suggested value, if the suggestion is a value.
    pub suggested: Option<Value>,
    /// The suggestion in words.
    pub advice: Option<String>,
    /// The observed values that support the finding.
    pub evidence: Vec<Evidence>,
    pub why: String,
    /// The expected effect.
    pub effect: Effect,
    pub risks: Vec<Risk>,
    /// The moment at which a change takes effect.
    pub restart: Restart,
    /// How to make the change.
    pub change: String,
    /// How to undo it.
    pub undo: String,
    /// Why `--apply` cannot make the change. `None`: it can.
    pub manual: Option<Manual>,
    /// The origin of the rule.
    pub source: String,
}

/// An observed value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// The name of the setting, fact or counter.
    pub name: String,
    pub unit: Unit,
    /// The value; for a counter, the value at the second moment.
    pub value: Value,
    /// For a counter: its increase in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increase: Option<Value>,
    /// For a counter: the window in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
}

/// A rule that could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undecided {
    /// The name of the rule.
    pub rule: String,
    /// The parameter of the rule.
    pub parameter: String,
    /// The values that the observation does not have. Empty if a counter has not moved.
    pub missing: Vec<String>,
}

/// The result of all rules of a product.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Advice {
    /// The findings, the largest expected effect first.
    pub findings: Vec<Finding>,
    /// The rules that could not be decided.
    pub undecided: Vec<Undecided>,
    /// The values that undecided rules need and the target does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<Hidden>,
    /// A limit of this result, such as an unknown version.
    pub note: Option<String>,
}
