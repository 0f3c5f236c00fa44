//! Processing classes: from rows of streams to rows of the output.

use std::collections::VecDeque;

use super::super::plan::Class;
use super::super::sql::Datum;
use super::super::sql::datum::Number;
use super::checkpoint::{ClassPoint, NamedPoint};
use super::counters::Counters;
use super::named::Named;

#[derive(Debug)]
pub(super) enum State {
    Bridge { allow_nulls: bool },
    Scheduled { rate: i64, start: Option<i64>, next: Option<i64>, newest: Option<Named> },
    Counter { count: i64 },
    MovingAverage { size: usize, threshold: f64, values: VecDeque<f64> },
}

const DAY: i64 = 24 * 3_600_000;

impl State {
    pub(super) fn new(class: &Class) -> Self {
        match class {
            Class::Bridge { allow_nulls } => Self::Bridge { allow_nulls: *allow_nulls },
            Class::Scheduled { rate, start } => {
                Self::Scheduled { rate: *rate, start: *start, next: None, newest: None }
            }
            Class::Counter => Self::Counter { count: 0 },
            Class::MovingAverage { size, threshold } => {
                Self::MovingAverage { size: *size, threshold: *threshold, values: VecDeque::new() }
            }
        }
    }

    /// What the class remembers.
    pub(super) fn point(&self) -> ClassPoint {
        match self {
            Self::Bridge { .. } => ClassPoint::Bridge,
            Self::Scheduled { next, newest, .. } => {
                ClassPoint::Scheduled { next: *next, newest: newest.as_ref().map(NamedPoint::of) }
            }
            Self::Counter { count } => ClassPoint::Counter { count: *count },
            Self::MovingAverage { values, .. } => {
                ClassPoint::MovingAverage { value_bits: values.iter().map(|value| value.to_bits()).collect() }
            }
        }
    }

    /// Takes what a class of the same kind remembered. Says whether it was of the same kind.
    pub(super) fn restore(&mut self, point: &ClassPoint) -> bool {
        match (self, point) {
            (Self::Bridge { .. }, ClassPoint::Bridge) => true,
            (Self::Scheduled { next, newest, .. }, ClassPoint::Scheduled { next: at, newest: row }) => {
                (*next, *newest) = (*at, row.as_ref().map(NamedPoint::named));
                true
            }
            (Self::Counter { count }, ClassPoint::Counter { count: known }) => {
                *count = *known;
                true
            }
            (Self::MovingAverage { size, values, .. }, ClassPoint::MovingAverage { value_bits }) => {
                values.extend(value_bits.iter().take(*size).map(|bits| f64::from_bits(*bits)));
                true
            }
            _ => false,
        }
    }

    /// A row of a stream comes.
    pub(super) fn row(
        &mut self,
        row: Named,
        now: i64,
        counters: &mut Counters,
    ) -> Result<Option<Named>, String> {
        match self {
            Self::Bridge { allow_nulls: false } if row.fields.iter().any(|(_, datum)| datum.is_null()) => {
                counters.rows_with_nulls += 1;
                Ok(None)
            }
            Self::Bridge { .. } => Ok(Some(row)),
            Self::Scheduled { rate, start, next, newest } => {
                next.get_or_insert_with(|| match start {
                    Some(start) if *start > now => *start,
                    // Turns stand at whole multiples of the rate since midnight.
                    _ => {
                        let midnight = now - now.rem_euclid(DAY);
                        midnight + ((now - midnight) / *rate + 1) * *rate
                    }
                });
                *newest = Some(row);
                Ok(None)
            }
            Self::Counter { count } => {
                *count += 1;
                let fields = vec![("counter".into(), Datum::Int(*count))];
                Ok(Some(Named { timed: now, fields }))
            }
            Self::MovingAverage { size, threshold, values } => {
                let first = row.fields.first().map(|(_, datum)| datum.number()).transpose()?.flatten();
                let value = first.map(Number::as_f64).ok_or("the first field of the stream is no number")?;
                let full = values.len() == *size;
                let mean = values.iter().sum::<f64>() / *size as f64;
                if full {
                    values.pop_front();
                }
                values.push_back(value);
                if !full {
                    return Ok(None);
                }
                // Without the absolute value a negative reading would always be acceptable.
                let acceptable = (value - mean).abs() <= *threshold * value.abs();
                let fields = vec![
                    ("raw_value".into(), Datum::Float(value)),
                    ("acceptable".into(), Datum::Int(i64::from(acceptable))),
                ];
                Ok(Some(Named { timed: row.timed, fields }))
            }
        }
    }

    /// When the class next gives a row by itself.
    pub(super) fn deadline(&self) -> Option<i64> {
        match self {
            Self::Scheduled { next, .. } => *next,
            _ => None,
        }
    }

    /// The class gives a row by itself.
    pub(super) fn turn(&mut self) -> Option<Named> {
        let Self::Scheduled { rate, next: Some(next), newest: Some(newest), .. } = self else { return None };
        let at = *next;
        *next = at.saturating_add(*rate);
        Some(Named { timed: at, fields: newest.fields.clone() })
    }

    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        let Self::Scheduled { rate, next: Some(next), .. } = self else { return 0 };
        let missed = (time.saturating_sub(*next) / *rate).max(0);
        *next = next.saturating_add(missed.saturating_mul(*rate));
        missed as u64
    }
}
