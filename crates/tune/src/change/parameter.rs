//! The change of one parameter.

use serde::{Deserialize, Serialize};

use crate::rules::Restart;
use crate::statement::Statement;
use crate::unit::Unit;
use crate::value::Value;

/// The change of one parameter from one value to another, with the statements for both ways. An undo file keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterChange {
    /// The name of the rule.
    pub rule: String,
    pub parameter: String,
    /// The thing that the parameter belongs to, if several have one.
    pub subject: Option<String>,
    /// The unit of both values.
    pub unit: Unit,
    /// The value before the change.
    pub old: Value,
    /// The value of the change.
    pub new: Value,
    /// The moment at which the change takes effect.
    pub restart: Restart,
    /// The statements that make the change.
    pub change: Vec<Statement>,
    /// The statements that keep a value over a restart. A change works without them.
    pub keep: Vec<Statement>,
    /// The statements that undo the change.
    pub undo: Vec<Statement>,
    /// The grant that a user needs, as a sentence.
    pub grant: Option<String>,
    /// Further notes for the person.
    pub also: Option<String>,
}

impl ParameterChange {
    /// The parameter, and what it belongs to.
    pub fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} of {subject}", self.parameter),
            None => self.parameter.clone(),
        }
    }
}
