//! The change that a rule suggests, and its undo: as statements for a program and as texts for people.

use std::sync::Arc;

use super::setter::{Manual, Setter, Setting, Written};
use crate::statement::Statement;
use crate::unit::Unit;
use crate::value::Value;

/// How to make the change of a rule, and how to undo it.
#[derive(Debug, Clone)]
pub enum Change {
    /// By setting the parameter.
    Set(Set),
    /// In words, for a person.
    Words {
        /// The change. `{suggested}`, `{current}` and `{name}` of the thing are replaced.
        change: String,
        /// The undo, in the same way.
        undo: String,
        /// Why a program cannot do it.
        reason: Manual,
    },
}

/// A change that sets the parameter.
#[derive(Debug, Clone)]
pub struct Set {
    pub(super) setter: Arc<Setter>,
    /// What is restarted, such as `server`, if the change takes effect then.
    pub(super) restarted: Option<String>,
    /// More for a person to know or to do.
    pub(super) also: Option<String>,
    /// The same for the undo.
    pub(super) undo_also: Option<String>,
    /// A value for the text of a change whose value the rule leaves open.
    pub(super) example: Option<String>,
    /// The parameter and unit that the undo sets if this one was 0, because the kernel clears one when the other is set.
    pub(super) restores: Option<(String, Unit)>,
}

/// What the texts and the statements of one change need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) setting: Setting<'a>,
    pub(crate) current: Option<&'a Value>,
    pub(crate) suggested: Option<&'a Value>,
    /// The value of the parameter of [`Change::restores`].
    pub(crate) restored: Option<&'a Value>,
}

/// The statements of a change and of its undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statements {
    pub(crate) change: Vec<Statement>,
    /// Keeps the change over a restart. The change works without it.
    pub(crate) keep: Vec<Statement>,
    pub(crate) undo: Vec<Statement>,
    /// Removes the value, for a target that had none before.
    pub(crate) reset: Option<Vec<Statement>>,
}

impl Change {
    /// The texts of change and undo, with `{suggested}` and the like in place of values.
    pub fn templates(&self, parameter: &str, unit: Unit) -> (String, String) {
        let setting = Setting { parameter, unit, subject: None };
        match self {
            Self::Words { change, undo, .. } => (change.clone(), undo.clone()),
            Self::Set(set) => {
                let example = set.example.as_deref().unwrap_or("{suggested}");
                let current = Written::placeholder("{current}");
                let restored =
                    set.restores.as_ref().map(|(name, _)| Written::placeholder(&format!("{{{name}}}")));
                (
                    set.change(setting, &Written::placeholder(example)),
                    set.undo(setting, &current, restored.as_ref()),
                )
            }
        }
    }

    /// The texts of change and undo with values.
    pub(crate) fn texts(&self, values: Values<'_>) -> (String, String) {
        match self {
            Self::Words { change, undo, .. } => (values.fill(change), values.fill(undo)),
            Self::Set(set) => {
                let written = |value: Option<&Value>, without: &str| {
                    value.map_or_else(|| Written::placeholder(without), Written::value)
                };
                let suggested = written(values.suggested, set.example.as_deref().unwrap_or(NO_NEW));
                let restored = values.restored_if_cleared().map(Written::value);
                (
                    set.change(values.setting, &suggested),
                    set.undo(values.setting, &written(values.current, NO_FORMER), restored.as_ref()),
                )
            }
        }
    }

    /// The statements, or the reason why a person must make the change. Both values must be known.
    pub(crate) fn statements(
        &self,
        setting: Setting<'_>,
        (old, new): (&Value, &Value),
        restored: Option<&Value>,
    ) -> Result<Statements, Manual> {
        let set = match self {
            Self::Words { reason, .. } => return Err(*reason),
            Self::Set(set) => set,
        };
        let values = Values { setting, current: Some(old), suggested: Some(new), restored };
        let new = Written::value(new);
        let undo = match (values.restored_if_cleared(), &set.restores) {
            (Some(value), Some((name, unit))) => {
                let other = Setting { parameter: name, unit: *unit, ..setting };
                set.setter.statements(other, &Written::value(value))?
            }
            _ => set.setter.statements(setting, &Written::value(old))?,
        };
        Ok(Statements {
            change: set.setter.statements(setting, &new)?,
            keep: set.setter.keeping(setting, &new),
            undo,
            reset: set.setter.resetting(setting),
        })
    }

    /// The parameter that the undo sets if this one was 0.
    pub(crate) fn restores(&self) -> Option<&str> {
        match self {
            Self::Set(set) => set.restores.as_ref().map(|(name, _)| name.as_str()),
            Self::Words { .. } => None,
        }
    }

    /// The grant that a user needs, as a sentence.
    pub(crate) fn grant(&self) -> Option<&str> {
        match self {
            Self::Set(set) => set.setter.grant(),
            Self::Words { .. } => None,
        }
    }

    /// Further notes for the person.
    pub(crate) fn also(&self) -> Option<&str> {
        match self {
            Self::Set(set) => set.also.as_deref(),
            Self::Words { .. } => None,
        }
    }

    /// The reason why a program cannot make the change.
    pub fn manual(&self) -> Option<Manual> {
        match self {
            Self::Set(set) => set.setter.manual(),
            Self::Words { reason, .. } => Some(*reason),
        }
    }
}

/// The text in place of a value that is not known.
const NO_FORMER: &str = "<the former value>";
const NO_NEW: &str = "<the new value>";

impl Values<'_> {
    /// The value of the other parameter, if the undo sets that one.
    fn restored_if_cleared(&self) -> Option<&Value> {
        self.restored.filter(|_| self.current == Some(&Value::Number(0.0)))
    }

    fn fill(&self, text: &str) -> String {
        let value =
            |value: Option<&Value>, without: &str| value.map_or_else(|| without.to_owned(), Value::to_string);
        text.replace("{name}", self.setting.subject.unwrap_or_default())
            .replace("{current}", &value(self.current, NO_FORMER))
            .replace("{suggested}", &value(self.suggested, NO_NEW))
    }
}

impl Set {
    fn change(&self, setting: Setting<'_>, value: &Written) -> String {
        self.completed(self.setter.text(setting, value), self.also.as_ref())
    }

    fn undo(&self, setting: Setting<'_>, value: &Written, restored: Option<&Written>) -> String {
        let text = match (&self.restores, restored) {
            (Some((name, unit)), Some(value)) => {
                self.setter.text(Setting { parameter: name, unit: *unit, ..setting }, value)
            }
            _ => self.setter.text(setting, value),
        };
        self.completed(text, self.undo_also.as_ref())
    }

    /// Adds the restart and what else a person must know.
    fn completed(&self, mut text: String, also: Option<&String>) -> String {
        if let Some(restarted) = &self.restarted {
            text.push_str(", then restart the ");
            text.push_str(restarted);
        }
        if let Some(also) = also {
            text.push_str("; ");
            text.push_str(also);
        }
        text
    }
}
