//! Compiled expressions and their value for a row.

use std::cmp::Ordering;
use std::sync::Arc;

use super::arithmetic::{Arithmetic, too_large};
use super::datum::{Datum, Number};
use super::functions::{Function, concat};
use super::like::is_like;
use super::meter::Meter;
use crate::virtual_sensors::descriptor::DataType;

/// An expression over the rows of some tables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Datum),
    Column {
        table: usize,
        column: usize,
    },
    /// The value of an expression of `GROUP BY`.
    Group(usize),
    /// The value of an aggregate.
    Aggregate(usize),
    /// The time of the execution.
    Now {
        divisor: i64,
    },
    Not(Box<Expr>),
    Negative(Box<Expr>),
    IsNull(Box<Expr>),
    IsTruth(Box<Expr>, bool),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Comparison, Box<Expr>),
    Arithmetic(Box<Expr>, Arithmetic, Box<Expr>),
    Concat(Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    Like {
        text: Box<Expr>,
        pattern: Box<Expr>,
        any_case: bool,
    },
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast(Box<Expr>, DataType),
    Call(Function, Vec<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Equal, or both no value.
    Same,
}

/// What an expression can read.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// A row of each table.
    pub(crate) rows: &'a [&'a [Datum]],
    pub(crate) groups: &'a [Datum],
    pub(crate) aggregates: &'a [Datum],
    /// Milliseconds since 1970.
    pub(crate) now: i64,
    /// What counts the work.
    pub(crate) meter: &'a Meter,
}

impl Scope<'_> {
    /// A value that an expression reads.
    fn read(self, datum: &Datum) -> Result<Datum, String> {
        if let Datum::Text(text) = datum {
            self.meter.spend_read(text)?;
        }
        Ok(datum.clone())
    }

    /// A value that an expression has made.
    fn made(self, datum: Result<Datum, String>) -> Result<Datum, String> {
        if let Ok(Datum::Text(text)) = &datum {
            self.meter.spend_made(text)?;
        }
        datum
    }
}

impl Expr {
    /// Whether the value depends on the time of the execution, so that it cannot be computed when a row comes.
    pub(crate) fn reads_clock(&self) -> bool {
        matches!(self, Self::Now { .. }) || self.operands().into_iter().any(Self::reads_clock)
    }

    fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_)
            | Self::Column { .. }
            | Self::Group(_)
            | Self::Aggregate(_)
            | Self::Now { .. } => Vec::new(),
            Self::Not(a) | Self::Negative(a) | Self::IsNull(a) | Self::IsTruth(a, _) | Self::Cast(a, _) => {
                vec![a]
            }
            Self::And(a, b)
            | Self::Or(a, b)
            | Self::Compare(a, _, b)
            | Self::Arithmetic(a, _, b)
            | Self::Concat(a, b)
            | Self::Like { text: a, pattern: b, .. } => vec![a, b],
            Self::In(a, list) => std::iter::once(&**a).chain(list).collect(),
            Self::Case { branches, otherwise } => {
                branches.iter().flat_map(|(a, b)| [a, b]).chain(otherwise.as_deref()).collect()
            }
            Self::Call(_, arguments) => arguments.iter().collect(),
        }
    }

    /// The value for a row.
    ///
    /// # Errors
    /// Returns what cannot be computed.
    pub(crate) fn value(&self, scope: Scope<'_>) -> Result<Datum, String> {
        scope.meter.spend(1)?;
        match self {
            Self::Literal(datum) => scope.read(datum),
            Self::Column { table, column } => scope.read(&scope.rows[*table][*column]),
            Self::Group(at) => scope.read(&scope.groups[*at]),
            Self::Aggregate(at) => scope.read(&scope.aggregates[*at]),
            Self::Now { divisor } => Ok(Datum::Int(scope.now.div_euclid(*divisor))),
            Self::Not(operand) => Ok(logical(operand.truth(scope)?.map(|truth| !truth))),
            Self::Negative(operand) => match operand.value(scope)?.number()? {
                None => Ok(Datum::Null),
                Some(Number::Int(number)) => {
                    number.checked_neg().map(Datum::Int).ok_or_else(|| too_large("-"))
                }
                Some(Number::Float(number)) => Ok(Datum::Float(-number)),
            },
            Self::IsNull(operand) => Ok(Datum::Bool(operand.value(scope)?.is_null())),
            Self::IsTruth(operand, wanted) => Ok(Datum::Bool(operand.truth(scope)? == Some(*wanted))),
            Self::And(left, right) => match left.truth(scope)? {
                Some(false) => Ok(Datum::Bool(false)),
                left => Ok(match (left, right.truth(scope)?) {
                    (_, Some(false)) => Datum::Bool(false),
                    (Some(true), Some(true)) => Datum::Bool(true),
                    _ => Datum::Null,
                }),
            },
            Self::Or(left, right) => match left.truth(scope)? {
                Some(true) => Ok(Datum::Bool(true)),
                left => Ok(match (left, right.truth(scope)?) {
                    (_, Some(true)) => Datum::Bool(true),
                    (Some(false), Some(false)) => Datum::Bool(false),
                    _ => Datum::Null,
                }),
            },
            Self::Compare(left, comparison, right) => {
                comparison.value(&left.value(scope)?, &right.value(scope)?)
            }
            Self::Arithmetic(left, operator, right) => {
                operator.value(&left.value(scope)?, &right.value(scope)?)
            }
            Self::Concat(left, right) => scope.made(concat(&[left.value(scope)?, right.value(scope)?])),
            Self::In(operand, list) => is_in(&operand.value(scope)?, list, scope),
            Self::Like { text, pattern, any_case } => {
                let (text, pattern) = (text.value(scope)?.text(), pattern.value(scope)?.text());
                let Some((text, pattern)) = text.zip(pattern) else { return Ok(Datum::Null) };
                is_like(&text, &pattern, *any_case, scope.meter).map(Datum::Bool)
            }
            Self::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if condition.truth(scope)? == Some(true) {
                        return result.value(scope);
                    }
                }
                otherwise.as_ref().map_or(Ok(Datum::Null), |otherwise| otherwise.value(scope))
            }
            Self::Cast(operand, data_type) => scope.made(cast(&operand.value(scope)?, data_type)),
            Self::Call(function, arguments) => {
                let values: Vec<_> =
                    arguments.iter().map(|argument| argument.value(scope)).collect::<Result<_, _>>()?;
                scope.made(function.value(&values))
            }
        }
    }

    /// The truth of a condition.
    pub(crate) fn truth(&self, scope: Scope<'_>) -> Result<Option<bool>, String> {
        self.value(scope)?.truth()
    }
}

fn logical(truth: Option<bool>) -> Datum {
    truth.map_or(Datum::Null, Datum::Bool)
}

fn is_in(value: &Datum, list: &[Expr], scope: Scope<'_>) -> Result<Datum, String> {
    let mut unknown = value.is_null();
    for item in list {
        match value.compare(&item.value(scope)?)? {
            Some(Ordering::Equal) => return Ok(Datum::Bool(true)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

/// Converts a value to a type, as `CAST` does.
pub(crate) fn cast(value: &Datum, data_type: &DataType) -> Result<Datum, String> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let whole = |least: i64, most: i64| {
        let number = match value.number()? {
            Some(Number::Int(number)) => Some(number),
            // A float of this range converts exactly after its fraction is cut off.
            Some(Number::Float(number)) if number.abs() < 9.2e18 => Some(number.trunc() as i64),
            _ => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Datum::Int(number)),
            None => Err(format!("{value} is out of the range of {data_type}")),
        }
    };
    match data_type {
        DataType::TinyInt => whole(i64::from(i8::MIN), i64::from(i8::MAX)),
        DataType::SmallInt => whole(i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer => whole(i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::BigInt => whole(i64::MIN, i64::MAX),
        DataType::Double => Ok(value.number()?.map_or(Datum::Null, |number| Datum::Float(number.as_f64()))),
        DataType::Float => match value.number()? {
            None => Ok(Datum::Null),
            Some(number) => Datum::finite(f64::from(number.as_f64() as f32), &format!("{value} as a float")),
        },
        DataType::Varchar(length) => cut(value, *length),
        DataType::Char(length) => cut(value, Some(*length)),
        DataType::Binary(_) => Err("a value of type binary cannot be made".into()),
    }
}

fn cut(value: &Datum, length: Option<u32>) -> Result<Datum, String> {
    let Some(text) = value.text() else { return Ok(Datum::Null) };
    let end = length.and_then(|length| text.char_indices().nth(length as usize)).map(|(at, _)| at);
    Ok(Datum::Text(end.map_or_else(|| text.clone(), |end| Arc::from(&text[..end]))))
}

impl Comparison {
    fn value(self, left: &Datum, right: &Datum) -> Result<Datum, String> {
        if self == Self::Same && (left.is_null() || right.is_null()) {
            return Ok(Datum::Bool(left.is_null() && right.is_null()));
        }
        Ok(logical(left.compare(right)?.map(|order| match self {
            Self::Equal | Self::Same => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
        })))
    }
}
