//! Intervals of the library as those of PostgreSQL, and back.

use datafusion::arrow::datatypes::IntervalMonthDayNano;
use model::Interval;

/// A fraction of a microsecond is left out.
pub(crate) fn from_arrow(interval: IntervalMonthDayNano) -> Interval {
    Interval { months: interval.months, days: interval.days, micros: interval.nanoseconds / 1_000 }
}

/// `None` if a part is larger than the library's intervals hold.
pub(crate) fn to_arrow(interval: Interval) -> Option<IntervalMonthDayNano> {
    let nanoseconds = interval.micros.checked_mul(1_000)?;
    Some(IntervalMonthDayNano::new(interval.months, interval.days, nanoseconds))
}
