//! Text of cells that CSV and JSON share.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{DurationMicrosecondType, IntervalMonthDayNanoType};
use arrow_cast::display::FormatOptions;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use model::Interval;

/// Format of times: with microseconds, and in UTC if they have a time zone.
pub(super) const TEXT_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));

/// An interval in PostgreSQL's form: `1 day 02:03:04.5`.
pub(super) fn interval_text(column: &dyn Array, row: usize) -> Result<String, ArrowError> {
    let interval = match column.data_type() {
        DataType::Interval(_) => {
            let interval = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let micros = interval.nanoseconds / 1_000;
            Interval { months: interval.months, days: interval.days, micros }
        }
        _ => {
            let micros = arrow_cast::cast(&column.slice(row, 1), &DataType::Duration(TimeUnit::Microsecond))?;
            Interval::of_difference(micros.as_primitive::<DurationMicrosecondType>().value(0))
        }
    };
    Ok(interval.to_string())
}
