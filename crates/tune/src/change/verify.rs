//! The effect of a change on a target: pure functions.

use std::collections::BTreeMap;

use crate::observation::Group;
use crate::probe::Sample;
use crate::rules::{Product, Restart};
use crate::value::Value;

/// The difference of two numbers that counts as none: the servers print some with six digits.
const SAME_NUMBER: f64 = 1e-6;

/// The effect of a change on a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The parameter has the value.
    AsWanted,
    /// The parameter has neither the old nor the new value: the target has rounded it, or somebody else has changed it.
    Other(Value),
    /// The parameter has its old value until the server is started again.
    AfterRestart,
    /// The parameter has its old value, although the target has taken the statement.
    Unchanged,
    /// The target does not show the parameter any more.
    Hidden,
}

impl Outcome {
    /// What a parameter that went from `old` to `new` shows now.
    pub(crate) fn of(old: &Value, new: &Value, restart: Restart, found: Option<&Value>) -> Self {
        match found {
            None => Self::Hidden,
            Some(found) if is_same(found, new) => Self::AsWanted,
            Some(found) if !is_same(found, old) => Self::Other(found.clone()),
            Some(_) if matches!(restart, Restart::Restart | Restart::Reinstall) => Self::AfterRestart,
            Some(_) => Self::Unchanged,
        }
    }

    /// Whether a later look can show another outcome: some servers need a moment.
    pub(crate) fn may_follow(&self) -> bool {
        matches!(self, Self::Unchanged)
    }
}

/// Whether two values mean the same to a server: texts without regard to case, numbers as far as they are printed.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.eq_ignore_ascii_case(other),
        (Value::Number(one), Value::Number(other)) => {
            (one - other).abs() <= SAME_NUMBER * one.abs().max(other.abs())
        }
        (one, other) => one == other,
    }
}

/// The value of a parameter in a sample.
pub(crate) fn found_in(
    sample: &Sample,
    product: &Product,
    parameter: &str,
    subject: Option<&str>,
) -> Option<Value> {
    value_in(&sample.settings, &sample.groups, product, parameter, subject)
}

/// The value of a parameter among those of a target and those of its groups.
pub(super) fn value_in(
    settings: &BTreeMap<String, Value>,
    groups: &BTreeMap<String, Vec<Group>>,
    product: &Product,
    parameter: &str,
    subject: Option<&str>,
) -> Option<Value> {
    let Some(subject) = subject else { return settings.get(parameter).cloned() };
    let kind = product.parameters.get(parameter)?.group.as_ref()?;
    let group = groups.get(kind)?.iter().find(|group| group.name == subject)?;
    group.settings.get(parameter).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_what_the_parameter_shows() {
        let of = |restart, found: Option<f64>| {
            Outcome::of(&1.0.into(), &4.0.into(), restart, found.map(Value::from).as_ref())
        };
        assert_eq!(of(Restart::Dynamic, Some(4.0)), Outcome::AsWanted);
        assert_eq!(of(Restart::Restart, Some(4.000_000_1)), Outcome::AsWanted);
        assert_eq!(of(Restart::Dynamic, Some(1.0)), Outcome::Unchanged);
        assert_eq!(of(Restart::Session, Some(1.0)), Outcome::Unchanged);
        assert_eq!(of(Restart::Restart, Some(1.0)), Outcome::AfterRestart);
        assert_eq!(of(Restart::Dynamic, Some(8.0)), Outcome::Other(8.0.into()));
        assert_eq!(of(Restart::Dynamic, None), Outcome::Hidden);
    }

    #[test]
    fn texts_are_the_same_in_any_case_and_zero_is_only_zero() {
        assert!(is_same(&"ON".into(), &"on".into()) && !is_same(&"on".into(), &"off".into()));
        assert!(is_same(&0.0.into(), &0.0.into()) && !is_same(&0.0.into(), &1e-9.into()));
        assert!(!is_same(&1.0.into(), &"1".into()));
    }
}
