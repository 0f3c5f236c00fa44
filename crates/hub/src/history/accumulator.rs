//! The aggregate of one key in one interval.

use std::cmp::Ordering;
use std::ops::Range;

use model::{Value, ValueRef};
use store::ValueColumn;

use super::block::{numbers, value_of};
use super::number::Number;
use super::request::Aggregation;

/// The running aggregate of one key in one interval.
#[derive(Debug, Clone)]
pub(super) enum Accumulator {
    /// Values of any type.
    Count(u64),
    Numbers {
        count: u64,
        sum: f64,
        /// The sum, as long as all numbers are integers and it fits.
        integers: Option<i64>,
        mean: bool,
    },
    Extreme {
        wanted: Ordering,
        value: Option<Value>,
    },
}

impl Accumulator {
    pub(super) fn new(aggregation: Aggregation) -> Self {
        let numbers = |mean| Self::Numbers { count: 0, sum: 0.0, integers: Some(0), mean };
        let extreme = |wanted| Self::Extreme { wanted, value: None };
        match aggregation {
            Aggregation::Avg => numbers(true),
            Aggregation::Sum => numbers(false),
            Aggregation::Min => extreme(Ordering::Less),
            Aggregation::Max => extreme(Ordering::Greater),
            Aggregation::Count => Self::Count(0),
            Aggregation::None => panic!("BUG: plain values are not reduced"),
        }
    }

    /// Adds the values of some rows of one key; returns by how many bytes the held text grows.
    pub(super) fn add_rows(&mut self, columns: &[ValueColumn], rows: Range<usize>) -> i64 {
        match (&mut *self, numbers(columns)) {
            (Self::Numbers { count, sum, integers, .. }, Some(numbers)) => {
                *count += rows.len() as u64;
                *integers = None;
                *sum = numbers[rows].iter().fold(*sum, |sum, number| sum + number);
                0
            }
            (Self::Count(count), Some(_)) => {
                *count += rows.len() as u64;
                0
            }
            _ => {
                let held = self.text_bytes();
                rows.filter_map(|row| value_of(columns, row)).for_each(|value| self.add(value));
                self.text_bytes() - held
            }
        }
    }

    fn text_bytes(&self) -> i64 {
        match self {
            Self::Extreme { value: Some(Value::String(text) | Value::Json(text)), .. } => text.len() as i64,
            Self::Extreme { .. } | Self::Count(_) | Self::Numbers { .. } => 0,
        }
    }

    fn add(&mut self, value: ValueRef<'_>) {
        match self {
            Self::Count(count) => *count += 1,
            Self::Numbers { count, sum, integers, .. } => {
                let Some(number) = Number::of(value) else { return };
                *count += 1;
                *sum += number.to_f64();
                let integer = if let Number::I64(integer) = number { Some(integer) } else { None };
                *integers = add_integers(*integers, integer);
            }
            Self::Extreme { wanted, value: present } => {
                if is_replaced(value, present.as_ref(), *wanted) {
                    *present = Some(value.to_owned());
                }
            }
        }
    }

    /// Adds the aggregate of the same interval of other series.
    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Count(count), Self::Count(more)) => *count += more,
            (
                Self::Numbers { count, sum, integers, .. },
                Self::Numbers { count: more, sum: more_sum, integers: more_integers, .. },
            ) => {
                *count += more;
                *sum += more_sum;
                *integers = add_integers(*integers, more_integers);
            }
            (one, Self::Extreme { value, .. }) => {
                value.iter().for_each(|value| one.add(value.as_ref()));
            }
            _ => panic!("BUG: reductions of different requests"),
        }
    }

    pub(super) fn result(self) -> Option<Value> {
        match self {
            Self::Count(0) | Self::Numbers { count: 0, .. } => None,
            Self::Count(count) => Some(Value::I64(count as i64)),
            Self::Numbers { count, sum, mean: true, .. } => Some(Value::F64(sum / count as f64)),
            Self::Numbers { integers: Some(sum), .. } => Some(Value::I64(sum)),
            Self::Numbers { sum, .. } => Some(Value::F64(sum)),
            Self::Extreme { value, .. } => value,
        }
    }
}

fn add_integers(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one?.checked_add(other?)
}

/// Whether `value` replaces the present extreme. Numbers take precedence over strings; other types have no order.
fn is_replaced(value: ValueRef<'_>, present: Option<&Value>, wanted: Ordering) -> bool {
    let present = present.map(Value::as_ref);
    match (Number::of(value), present) {
        (Some(number), Some(present)) => {
            Number::of(present).is_none_or(|present| number.compare(present) == wanted)
        }
        (Some(_), None) => true,
        (None, present) => match (value, present) {
            (ValueRef::String(_), None) => true,
            (ValueRef::String(one), Some(ValueRef::String(other))) => one.cmp(other) == wanted,
            _ => false,
        },
    }
}
