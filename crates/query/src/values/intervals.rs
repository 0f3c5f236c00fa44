//! Converts Arrow's intervals to PostgreSQL's and back.

use datafusion::arrow::datatypes::IntervalMonthDayNano;
use model::Interval;

/// Drops fractions of a microsecond.
pub(crate) fn from_arrow(interval: IntervalMonthDayNano) -> Interval {
    Interval { months: interval.months, days: interval.days, micros: interval.nanoseconds / 1_000 }
}

/// Returns `None` if a part exceeds the range of Arrow's intervals.
pub(crate) fn to_arrow(interval: Interval) -> Option<IntervalMonthDayNano> {
    let nanoseconds = interval.micros.checked_mul(1_000)?;
    Some(IntervalMonthDayNano::new(interval.months, interval.days, nanoseconds))
}
