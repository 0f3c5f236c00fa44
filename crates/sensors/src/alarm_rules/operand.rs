//! Predicates, and their evaluation on a value.

use std::borrow::Cow;

use model::ValueRef;

use super::java_double::text_of_double;
use super::keys::KeyIndex;
use super::values::Values;

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operand<T> {
    pub(super) default: T,
    /// Attributes that replace the default, the first that has a value.
    pub(super) dynamic: Vec<KeyIndex>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Predicate {
    Number { operation: Comparison, operand: Operand<f64> },
    Text { operation: TextOperation, operand: Operand<Box<str>>, ignore_case: bool },
    Bool { equal: bool, operand: Operand<bool> },
    All(Vec<Self>),
    Any(Vec<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOperation {
    Equal,
    NotEqual,
    StartsWith,
    EndsWith,
    Contains,
    NotContains,
    In,
    NotIn,
}

impl Predicate {
    /// Whether the value satisfies the predicate. A value that is not a number satisfies no predicate of numbers; `mismatches` counts
    /// these.
    pub(super) fn holds(&self, value: ValueRef<'_>, values: &Values, mismatches: &mut u64) -> bool {
        match self {
            Self::Number { operation, operand } => match number_of(value) {
                Some(number) => operation.holds(number, operand.number(values)),
                None => {
                    *mismatches += 1;
                    false
                }
            },
            Self::Text { operation, operand, ignore_case } => {
                let expected = operand.text(values);
                match ignore_case {
                    true => operation.holds(&text_of(value).to_lowercase(), &expected.to_lowercase()),
                    false => operation.holds(&text_of(value), &expected),
                }
            }
            Self::Bool { equal, operand } => match bool_of(value) {
                Some(value) => (value == operand.bool(values)) == *equal,
                None => {
                    *mismatches += 1;
                    false
                }
            },
            Self::All(parts) => parts.iter().all(|part| part.holds(value, values, mismatches)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(value, values, mismatches)),
        }
    }
}

impl Comparison {
    fn holds(self, value: f64, expected: f64) -> bool {
        match self {
            Self::Equal => value == expected,
            Self::NotEqual => value != expected,
            Self::Greater => value > expected,
            Self::Less => value < expected,
            Self::GreaterOrEqual => value >= expected,
            Self::LessOrEqual => value <= expected,
        }
    }
}

impl TextOperation {
    fn holds(self, value: &str, expected: &str) -> bool {
        match self {
            Self::Equal => value == expected,
            Self::NotEqual => value != expected,
            Self::StartsWith => value.starts_with(expected),
            Self::EndsWith => value.ends_with(expected),
            Self::Contains => value.contains(expected),
            Self::NotContains => !value.contains(expected),
            Self::In => is_in(value, expected),
            Self::NotIn => !is_in(value, expected),
        }
    }
}

/// Whether a list `a, b` has the value. The quotes of a list are left out if all its parts have the same.
fn is_in(value: &str, list: &str) -> bool {
    let parts = || list.split(',').map(str::trim);
    let quoted_by =
        |quote: char| parts().all(|part| part.len() >= 2 && part.starts_with(quote) && part.ends_with(quote));
    match quoted_by('"') || quoted_by('\'') {
        true => parts().any(|part| &part[1..part.len() - 1] == value),
        false => parts().any(|part| part == value),
    }
}

impl Operand<f64> {
    pub(super) fn number(&self, values: &Values) -> f64 {
        self.dynamic_value(values).and_then(number_of).unwrap_or(self.default)
    }
}

impl Operand<bool> {
    fn bool(&self, values: &Values) -> bool {
        self.dynamic_value(values).and_then(bool_of).unwrap_or(self.default)
    }
}

impl Operand<Box<str>> {
    fn text<'a>(&'a self, values: &'a Values) -> Cow<'a, str> {
        self.dynamic_value(values).map_or(Cow::Borrowed(&*self.default), text_of)
    }
}

impl<T> Operand<T> {
    pub(super) fn dynamic_value<'a>(&self, values: &'a Values) -> Option<ValueRef<'a>> {
        self.dynamic.iter().find_map(|key| values.get(*key)).map(|observed| observed.value.as_ref())
    }
}

/// The number of a value: a text counts if it is one, as in ThingsBoard.
pub(super) fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Bool(value) => Some(f64::from(u8::from(value))),
        ValueRef::I64(value) => Some(value as f64),
        ValueRef::F64(value) => Some(value),
        ValueRef::String(text) | ValueRef::Json(text) => {
            text.trim().parse().ok().filter(|number: &f64| number.is_finite())
        }
    }
}

/// The truth of a value: a number is true above 0, and a text if it is `true`.
pub(super) fn bool_of(value: ValueRef<'_>) -> Option<bool> {
    match value {
        ValueRef::Bool(value) => Some(value),
        ValueRef::I64(value) => Some(value > 0),
        ValueRef::F64(value) => Some(value > 0.0),
        ValueRef::String(text) => Some(text.eq_ignore_ascii_case("true")),
        ValueRef::Json(_) => None,
    }
}

/// The text of a value, as ThingsBoard writes it.
pub(super) fn text_of(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        ValueRef::I64(value) => Cow::Owned(value.to_string()),
        ValueRef::F64(value) => Cow::Owned(text_of_double(value)),
        ValueRef::String(text) | ValueRef::Json(text) => Cow::Borrowed(text),
    }
}
