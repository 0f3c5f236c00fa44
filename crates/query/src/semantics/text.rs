//! Writes values as text like PostgreSQL: numbers without a needless fraction, times with a blank in the middle.

use std::fmt::Write as _;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, DurationMicrosecondType, Float32Type, Float64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::compute::cast;
use model::{Date, Timestamp};

use crate::values::intervals::from_arrow;
use model::Interval;
use model::interval::DAY_US;

/// Powers of ten from which on a number is written with an exponent (PostgreSQL's `d2s.c` and `f2s.c`).
const F64_EXPONENT_MIN: i32 = 15;
const F32_EXPONENT_MIN: i32 = 6;
/// The smallest power of ten without an exponent.
const PLAIN_EXPONENT_MIN: i32 = -4;

/// Whether DataFusion writes values of a type differently.
pub(crate) fn differs(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float32
            | DataType::Float64
            | DataType::Timestamp(..)
            | DataType::Date64
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(IntervalUnit::MonthDayNano)
            | DataType::Duration(_)
    )
}

/// Returns the texts of all values of such a type.
pub(crate) fn texts(array: &ArrayRef) -> Result<StringViewArray, ArrowError> {
    let exact = |data_type| cast(array, &data_type);
    Ok(match array.data_type() {
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            written(array, |row, out| write_f64(numbers.value(row), out))
        }
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            written(array, |row, out| write_f32(numbers.value(row), out))
        }
        DataType::Timestamp(_, zone) => {
            let times = exact(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            let times = times.as_primitive::<TimestampMicrosecondType>();
            written(array, |row, out| write_timestamp(times.value(row), zone.is_some(), out))
        }
        DataType::Date32 | DataType::Date64 => {
            let dates = exact(DataType::Date32)?;
            let dates = dates.as_primitive::<Date32Type>();
            written(array, |row, out| {
                if write_date(i64::from(dates.value(row)) * DAY_US, out) {
                    out.push_str(" BC");
                }
            })
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let times = exact(DataType::Time64(TimeUnit::Microsecond))?;
            let times = times.as_primitive::<Time64MicrosecondType>();
            written(array, |row, out| write_time(times.value(row), out))
        }
        DataType::Duration(_) => {
            let spans = exact(DataType::Duration(TimeUnit::Microsecond))?;
            let spans = spans.as_primitive::<DurationMicrosecondType>();
            written(array, |row, out| put(out, Interval::of_difference(spans.value(row))))
        }
        _ => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            written(array, |row, out| put(out, from_arrow(intervals.value(row))))
        }
    })
}

fn written(array: &ArrayRef, mut write: impl FnMut(usize, &mut String)) -> StringViewArray {
    let mut texts = StringViewBuilder::with_capacity(array.len());
    let mut text = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        write(row, &mut text);
        texts.append_value(&text);
    }
    texts.finish()
}

fn put(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("BUG: memory takes text");
}

/// Appends the shortest text that reads back as the same number.
pub(crate) fn write_f64(number: f64, out: &mut String) {
    write_float(number, &format!("{number:e}"), F64_EXPONENT_MIN, out);
}

/// As [`write_f64`], for a 4-byte number.
pub(crate) fn write_f32(number: f32, out: &mut String) {
    write_float(number.into(), &format!("{number:e}"), F32_EXPONENT_MIN, out);
}

/// Appends a number given as digits with an exponent, such as `-1.5e-7`.
fn write_float(number: f64, digits: &str, exponent_min: i32, out: &mut String) {
    if !number.is_finite() {
        let name = match number {
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ => "NaN",
        };
        return out.push_str(name);
    }
    let (mantissa, exponent) = digits.split_once('e').expect("BUG: the number is given with an exponent");
    let exponent: i32 = exponent.parse().expect("BUG: exponents are numbers");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (first, others) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let places = exponent.unsigned_abs() as usize;
    out.push_str(sign);
    if !(PLAIN_EXPONENT_MIN..exponent_min).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        put(out, format_args!("{mantissa}e{sign}{places:02}"));
    } else if exponent < 0 {
        put(out, format_args!("0.{:0>width$}{others}", first, width = places));
    } else {
        let (whole, fraction) = others.split_at(others.len().min(places));
        put(out, format_args!("{first}{whole:0<places$}"));
        if !fraction.is_empty() {
            put(out, format_args!(".{fraction}"));
        }
    }
}

/// `YYYY-MM-DD HH:MM:SS.ffffff`, with `+00` if the time has a zone.
pub(crate) fn write_timestamp(micros: i64, has_zone: bool, out: &mut String) {
    let is_before_christ = write_date(micros, out);
    out.push(' ');
    write_time(micros.rem_euclid(DAY_US), out);
    if has_zone {
        out.push_str("+00");
    }
    if is_before_christ {
        out.push_str(" BC");
    }
}

/// Appends the year. Returns whether it lies before the year 1, from where years count backwards.
fn write_date(micros: i64, out: &mut String) -> bool {
    let Date { year, month, day } = Timestamp::from_micros(micros).date();
    let counted = if year > 0 { year } else { 1 - year };
    put(out, format_args!("{counted:04}-{month:02}-{day:02}"));
    year <= 0
}

/// Appends a time of day.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    let seconds = micros / 1_000_000;
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        put(out, format_args!(".{fraction}"));
    }
}
