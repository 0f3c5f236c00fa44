//! The operands of predicates and of other parts of a rule.

use std::borrow::Cow;

use model::ValueRef;

use super::keys::KeyIndex;
use super::values::Values;
use crate::predicate::{self, Mode, Operands};

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operand<T> {
    pub(super) default: T,
    /// Attributes that replace the default, the first that has a value.
    pub(super) dynamic: Vec<KeyIndex>,
}

/// A predicate of a rule.
pub(super) type Predicate = predicate::Predicate<Operand<f64>, Operand<Box<str>>, Operand<bool>>;

impl Operands<Operand<f64>, Operand<Box<str>>, Operand<bool>> for Values {
    fn number(&self, operand: &Operand<f64>) -> Option<f64> {
        Some(operand.number(self))
    }

    fn text<'a>(&'a self, operand: &'a Operand<Box<str>>) -> Option<Cow<'a, str>> {
        let found = operand.dynamic_value(self);
        Some(found.map_or(Cow::Borrowed(&*operand.default), |value| Mode::Rule.text(value)))
    }

    fn bool(&self, operand: &Operand<bool>) -> Option<bool> {
        let found = operand.dynamic_value(self).and_then(|value| Mode::Rule.bool(value));
        Some(found.unwrap_or(operand.default))
    }
}

impl Operand<f64> {
    pub(super) fn number(&self, values: &Values) -> f64 {
        self.dynamic_value(values).and_then(|value| Mode::Rule.number(value)).unwrap_or(self.default)
    }
}

impl<T> Operand<T> {
    pub(super) fn dynamic_value<'a>(&self, values: &'a Values) -> Option<ValueRef<'a>> {
        self.dynamic.iter().find_map(|key| values.get(*key)).map(|observed| observed.value.as_ref())
    }
}
