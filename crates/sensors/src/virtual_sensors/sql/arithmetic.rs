//! Operators of numbers.

use super::datum::{Datum, Number};

/// An operator of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Arithmetic {
    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }

    /// The result. Dividing by zero has no value, as in MySQL; whole numbers give whole numbers, as in H2.
    pub(crate) fn value(self, left: &Datum, right: &Datum) -> Result<Datum, String> {
        let (Some(left), Some(right)) = (left.number()?, right.number()?) else { return Ok(Datum::Null) };
        if let (Number::Int(left), Number::Int(right)) = (left, right) {
            if right == 0 && matches!(self, Self::Divide | Self::Modulo) {
                return Ok(Datum::Null);
            }
            let result = match self {
                Self::Add => left.checked_add(right),
                Self::Subtract => left.checked_sub(right),
                Self::Multiply => left.checked_mul(right),
                Self::Divide => left.checked_div(right),
                Self::Modulo => Some(left.wrapping_rem(right)),
            };
            return result.map(Datum::Int).ok_or_else(|| too_large(self.sign()));
        }
        let (left, right) = (left.as_f64(), right.as_f64());
        let result = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            _ if right == 0.0 => return Ok(Datum::Null),
            Self::Divide => left / right,
            Self::Modulo => left % right,
        };
        Datum::finite(result, &format!("the result of {}", self.sign()))
    }
}

/// The fault of a whole number that does not fit.
pub(super) fn too_large(operator: &str) -> String {
    format!("the result of {operator} is too large for a whole number of 64 bits")
}
