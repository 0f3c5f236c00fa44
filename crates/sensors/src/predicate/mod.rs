//! Predicates on values (ThingsBoard's `KeyFilterPredicate`), which alarm rules and queries of entities have in common.
//!
//! Both have the same operations. A [`Mode`] has what differs: how a value of another type counts, and the lists of `IN`. The operands are
//! types of the user, because a rule looks up an attribute when it is evaluated, and a query before.

mod java_double;
mod mode;

use std::borrow::Cow;

use model::ValueRef;
use serde::Deserialize;

pub use mode::Mode;

/// A predicate on one value, with operands that are numbers, texts and booleans.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Predicate<N, T, B> {
    /// Compares numbers. It holds for no other value.
    Numeric {
        /// The comparison.
        operation: Comparison,
        /// The second operand.
        value: N,
    },
    /// Compares text. An absent value counts as empty text.
    String {
        /// The comparison.
        operation: TextOperation,
        /// The second operand.
        value: T,
        /// Whether upper and lower case are the same.
        #[serde(default, rename = "ignoreCase")]
        ignore_case: bool,
    },
    /// Compares booleans. It holds for no other value.
    Boolean {
        /// The comparison.
        operation: Equality,
        /// The second operand.
        value: B,
    },
    /// Joins predicates on the same value.
    Complex {
        /// How they are joined.
        operation: Join,
        /// The predicates.
        predicates: Vec<Self>,
    },
}

/// A comparison of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Comparison {
    /// The same number.
    Equal,
    /// Another number.
    NotEqual,
    /// A larger number.
    Greater,
    /// A smaller number.
    Less,
    /// A larger number or the same.
    GreaterOrEqual,
    /// A smaller number or the same.
    LessOrEqual,
}

/// A comparison of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TextOperation {
    /// The same text.
    Equal,
    /// Another text.
    NotEqual,
    /// It begins so.
    StartsWith,
    /// It ends so.
    EndsWith,
    /// It has this part.
    Contains,
    /// It does not have this part.
    NotContains,
    /// One of a list, separated by commas.
    In,
    /// None of a list, separated by commas.
    NotIn,
}

/// A comparison of booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Equality {
    /// The same.
    Equal,
    /// The other.
    NotEqual,
}

/// How predicates are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Join {
    /// All must hold.
    And,
    /// One must hold.
    Or,
}

/// Finds the values of operands. With an operand without a value no comparison holds.
pub trait Operands<N, T, B> {
    /// The value of an operand that is a number.
    fn number(&self, operand: &N) -> Option<f64>;
    /// The value of an operand that is a text.
    fn text<'a>(&'a self, operand: &'a T) -> Option<Cow<'a, str>>;
    /// The value of an operand that is a boolean.
    fn bool(&self, operand: &B) -> Option<bool>;
}

impl<N, T, B> Predicate<N, T, B> {
    /// Whether a value satisfies the predicate. `mismatches` counts the comparisons of numbers and booleans for which the value has the
    /// wrong type.
    pub fn holds(
        &self,
        value: Option<ValueRef<'_>>,
        mode: Mode,
        operands: &impl Operands<N, T, B>,
        mismatches: &mut u64,
    ) -> bool {
        let mut typed = |is_typed: bool| *mismatches += u64::from(!is_typed);
        match self {
            Self::Numeric { operation, value: operand } => {
                let number = value.and_then(|value| mode.number(value));
                typed(number.is_some());
                number
                    .zip(operands.number(operand))
                    .is_some_and(|(number, expected)| operation.holds(number, expected))
            }
            Self::String { operation, value: operand, ignore_case } => {
                let text = value.map(|value| mode.text(value)).unwrap_or_default();
                operands.text(operand).is_some_and(|expected| match ignore_case {
                    true => operation.holds(&text.to_lowercase(), &expected.to_lowercase(), mode),
                    false => operation.holds(&text, &expected, mode),
                })
            }
            Self::Boolean { operation, value: operand } => {
                let value = value.and_then(|value| mode.bool(value));
                typed(value.is_some());
                value
                    .zip(operands.bool(operand))
                    .is_some_and(|(value, expected)| (value == expected) == (*operation == Equality::Equal))
            }
            Self::Complex { predicates, .. } if predicates.is_empty() && mode == Mode::Query => true,
            Self::Complex { operation: Join::And, predicates } => {
                predicates.iter().all(|part| part.holds(value, mode, operands, mismatches))
            }
            Self::Complex { operation: Join::Or, predicates } => {
                predicates.iter().any(|part| part.holds(value, mode, operands, mismatches))
            }
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
    fn holds(self, value: &str, expected: &str, mode: Mode) -> bool {
        match self {
            Self::Equal => value == expected,
            Self::NotEqual => value != expected,
            Self::StartsWith => value.starts_with(expected),
            Self::EndsWith => value.ends_with(expected),
            Self::Contains => value.contains(expected),
            Self::NotContains => !value.contains(expected),
            Self::In => mode.is_in(value, expected),
            Self::NotIn => !mode.is_in(value, expected),
        }
    }
}
