//! Converts cells of Arrow columns to values of a table. A conversion is exact, or reports that it is not.
//!
//! | Arrow type | field | tag |
//! |---|---|---|
//! | bool, int8 to int64, uint8 to uint32 | the same | its text |
//! | uint64 | int64; left out beyond 63 bits | its digits |
//! | float16, float32, float64 | float64 | the shortest text that reads back as the same number |
//! | decimal | int64 without decimal places, else float64; more than 15 digits are rounded | its digits |
//! | text | text | the same |
//! | date, time, timestamp | text: `2024-05-01`, `08:00:00.5`, `2024-05-01T08:00:00Z` (without `Z` if it has no zone) | the same text |
//! | dictionary | like the type of its values | the same |
//! | all others: lists, structs, maps, bytes, durations, intervals | not imported | refused |

use std::fmt::Write;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use model::{TimeRange, Timestamp, ValueRef};

/// Decimal digits that every 64-bit floating-point number keeps.
const F64_DIGITS: usize = 15;
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// A cell as the value of a field.
#[derive(Debug, PartialEq)]
pub(super) enum Cell<'a> {
    /// The exact value.
    Value(ValueRef<'a>),
    /// The nearest number, because the decimal has more digits than a number keeps.
    Rounded(f64),
    /// No value.
    Null,
    /// A whole number beyond 63 bits.
    TooLarge,
}

/// The type of the values of a column; for a dictionary that of its values.
pub(super) fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        plain => plain,
    }
}

/// Whether values of this type can be fields, and tags.
pub(super) fn is_value(data_type: &DataType) -> bool {
    use DataType::{
        Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64,
        Int8, Int16, Int32, Int64, LargeUtf8, Null, Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
        Utf8, Utf8View,
    };
    matches!(
        value_type(data_type),
        Null | Boolean
            | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float16
            | Float32
            | Float64
            | Decimal32(..)
            | Decimal64(..)
            | Decimal128(..)
            | Decimal256(..)
            | Utf8
            | LargeUtf8
            | Utf8View
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(..)
    )
}

/// The value of a cell. `buffer` holds text that is not in the column itself. `json` means that the texts are JSON.
pub(super) fn value<'a>(column: &'a dyn Array, row: usize, json: bool, buffer: &'a mut String) -> Cell<'a> {
    if column.is_null(row) {
        return Cell::Null;
    }
    let value = match column.data_type() {
        DataType::Null => return Cell::Null,
        DataType::Boolean => ValueRef::Bool(column.as_boolean().value(row)),
        DataType::Int8 => ValueRef::I64(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => ValueRef::I64(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => ValueRef::I64(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => ValueRef::I64(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => ValueRef::I64(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => ValueRef::I64(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => ValueRef::I64(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => match i64::try_from(column.as_primitive::<UInt64Type>().value(row)) {
            Ok(number) => ValueRef::I64(number),
            Err(_) => return Cell::TooLarge,
        },
        DataType::Float16 => ValueRef::F64(column.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => ValueRef::F64(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => ValueRef::F64(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = plain_text(column, row);
            if json { ValueRef::Json(text) } else { ValueRef::String(text) }
        }
        _ => match decimal(column, row) {
            Some(decimal) => return decimal.value(buffer),
            None => {
                buffer.clear();
                if !put_text(column, row, buffer) {
                    return Cell::Null;
                }
                ValueRef::String(buffer)
            }
        },
    };
    Cell::Value(value)
}

/// The exact text of a cell as a tag; `None` for no value.
pub(super) fn tag(column: &dyn Array, row: usize) -> Option<String> {
    let mut text = String::new();
    (!column.is_null(row) && put_text(column, row, &mut text)).then_some(text)
}

/// The text of a cell of a text column; `None` for no value and for other columns.
pub(super) fn text(column: &dyn Array, row: usize) -> Option<&str> {
    let is_text = matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    (is_text && column.is_valid(row)).then(|| plain_text(column, row))
}

fn plain_text(column: &dyn Array, row: usize) -> &str {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row),
        _ => column.as_string_view().value(row),
    }
}

/// Writes the text of a cell. Returns `false` if the type has no text form.
fn put_text(column: &dyn Array, row: usize, out: &mut String) -> bool {
    macro_rules! put {
        ($format:literal, $type:ty) => {
            write!(out, $format, column.as_primitive::<$type>().value(row))
        };
    }
    let put = match column.data_type() {
        DataType::Boolean => write!(out, "{}", column.as_boolean().value(row)),
        DataType::Int8 => put!("{}", Int8Type),
        DataType::Int16 => put!("{}", Int16Type),
        DataType::Int32 => put!("{}", Int32Type),
        DataType::Int64 => put!("{}", Int64Type),
        DataType::UInt8 => put!("{}", UInt8Type),
        DataType::UInt16 => put!("{}", UInt16Type),
        DataType::UInt32 => put!("{}", UInt32Type),
        DataType::UInt64 => put!("{}", UInt64Type),
        DataType::Float16 => write!(out, "{:?}", f32::from(column.as_primitive::<Float16Type>().value(row))),
        DataType::Float32 => put!("{:?}", Float32Type),
        DataType::Float64 => put!("{:?}", Float64Type),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            out.push_str(plain_text(column, row));
            Ok(())
        }
        DataType::Date32 => put_date(out, i64::from(column.as_primitive::<Date32Type>().value(row)) * DAY_S),
        DataType::Date64 => {
            let millis = column.as_primitive::<Date64Type>().value(row);
            match millis.rem_euclid(DAY_S * 1_000) {
                0 => put_date(out, millis.div_euclid(1_000)),
                _ => put_instant(out, millis, 1_000, ""),
            }
        }
        DataType::Time32(TimeUnit::Second) => {
            put_time_of_day(out, column.as_primitive::<Time32SecondType>().value(row).into(), 1)
        }
        DataType::Time32(_) => {
            put_time_of_day(out, column.as_primitive::<Time32MillisecondType>().value(row).into(), 1_000)
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            put_time_of_day(out, column.as_primitive::<Time64MicrosecondType>().value(row), 1_000_000)
        }
        DataType::Time64(_) => {
            put_time_of_day(out, column.as_primitive::<Time64NanosecondType>().value(row), SECOND_NS)
        }
        DataType::Timestamp(unit, zone) => {
            let (ticks, per_second) = ticks(column, row, *unit);
            put_instant(out, ticks, per_second, if zone.is_some() { "Z" } else { "" })
        }
        _ => match decimal(column, row) {
            Some(decimal) => {
                out.push_str(&decimal.text());
                Ok(())
            }
            None => return false,
        },
    };
    put.expect("BUG: a string takes any text");
    true
}

/// A time in whole microseconds, rounded towards the past, and whether it was rounded.
pub(super) fn time(column: &dyn Array, row: usize) -> Result<Option<(Timestamp, bool)>, ()> {
    if column.is_null(row) {
        return Ok(None);
    }
    let (ticks, per_second) = match column.data_type() {
        DataType::Timestamp(unit, _) => ticks(column, row, *unit),
        _ => (column.as_primitive::<Int64Type>().value(row), 1_000_000),
    };
    let (micros, cut) = match per_second {
        1_000_000_000 => (Some(ticks.div_euclid(1_000)), ticks.rem_euclid(1_000) != 0),
        _ => (ticks.checked_mul(1_000_000 / per_second), false),
    };
    let time = micros.map(Timestamp::from_micros).filter(|time| TimeRange::ALL.contains(*time));
    time.map(|time| Some((time, cut))).ok_or(())
}

/// The count of a timestamp, and its units per second.
fn ticks(column: &dyn Array, row: usize, unit: TimeUnit) -> (i64, i64) {
    match unit {
        TimeUnit::Second => (column.as_primitive::<TimestampSecondType>().value(row), 1),
        TimeUnit::Millisecond => (column.as_primitive::<TimestampMillisecondType>().value(row), 1_000),
        TimeUnit::Microsecond => (column.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000),
        TimeUnit::Nanosecond => (column.as_primitive::<TimestampNanosecondType>().value(row), SECOND_NS),
    }
}

fn put_date(out: &mut String, seconds: i64) -> std::fmt::Result {
    match seconds.checked_mul(1_000_000) {
        Some(micros) => write!(out, "{}", Timestamp::from_micros(micros).date()),
        // The time is outside of the calendar; the number is exact.
        None => write!(out, "{seconds} s"),
    }
}

fn put_instant(out: &mut String, ticks: i64, per_second: i64, zone: &str) -> std::fmt::Result {
    let (seconds, fraction) = (ticks.div_euclid(per_second), ticks.rem_euclid(per_second));
    put_date(out, seconds)?;
    out.push('T');
    put_time_of_day(out, seconds.rem_euclid(DAY_S) * per_second + fraction, per_second)?;
    out.push_str(zone);
    Ok(())
}

fn put_time_of_day(out: &mut String, ticks: i64, per_second: i64) -> std::fmt::Result {
    let (seconds, fraction) = (ticks.div_euclid(per_second), ticks.rem_euclid(per_second));
    write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        let fraction = format!("{fraction:0digits$}");
        write!(out, ".{}", fraction.trim_end_matches('0'))?;
    }
    Ok(())
}

/// A decimal: `unscaled` divided by ten to the power of `scale`.
struct Decimal {
    unscaled: String,
    scale: i8,
}

fn decimal(column: &dyn Array, row: usize) -> Option<Decimal> {
    let (unscaled, scale) = match column.data_type() {
        DataType::Decimal32(_, scale) => {
            (column.as_primitive::<Decimal32Type>().value(row).to_string(), scale)
        }
        DataType::Decimal64(_, scale) => {
            (column.as_primitive::<Decimal64Type>().value(row).to_string(), scale)
        }
        DataType::Decimal128(_, scale) => {
            (column.as_primitive::<Decimal128Type>().value(row).to_string(), scale)
        }
        DataType::Decimal256(_, scale) => {
            (column.as_primitive::<Decimal256Type>().value(row).to_string(), scale)
        }
        _ => return None,
    };
    Some(Decimal { unscaled, scale: *scale })
}

impl Decimal {
    /// All digits, with as many decimal places as the type has.
    fn text(&self) -> String {
        let (sign, digits) = match self.unscaled.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", self.unscaled.as_str()),
        };
        match usize::try_from(self.scale) {
            Ok(0) => self.unscaled.clone(),
            Ok(places) => {
                let digits = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = digits.split_at(digits.len() - places);
                format!("{sign}{whole}.{fraction}")
            }
            Err(_) if digits == "0" => self.unscaled.clone(),
            Err(_) => format!("{}{}", self.unscaled, "0".repeat(self.scale.unsigned_abs().into())),
        }
    }

    fn value(&self, buffer: &mut String) -> Cell<'static> {
        *buffer = self.text();
        if self.scale <= 0 {
            return buffer.parse().map_or(Cell::TooLarge, |number| Cell::Value(ValueRef::I64(number)));
        }
        let Ok(number) = buffer.parse() else { return Cell::Null };
        let digits = self.unscaled.trim_start_matches('-').trim_end_matches('0').len();
        if digits <= F64_DIGITS { Cell::Value(ValueRef::F64(number)) } else { Cell::Rounded(number) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, Float16Array,
        Float32Array, Float64Array, Int8Array, NullArray, StringViewArray, Time32MillisecondArray,
        Time64NanosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
    };

    use super::*;

    fn decimals(values: &[i128], scale: i8) -> Decimal128Array {
        Decimal128Array::from(values.to_vec()).with_precision_and_scale(38, scale).unwrap()
    }

    #[test]
    fn every_scalar_is_exact_as_a_field_and_as_a_tag() {
        // The same number as a float16.
        let half = Float16Array::from_iter_values(
            [(-1.5f32)].map(<Float16Type as arrow_array::ArrowPrimitiveType>::Native::from_f32),
        );
        let cases: Vec<(ArrayRef, ValueRef<'_>, &str)> = vec![
            (Arc::new(BooleanArray::from(vec![true])), ValueRef::Bool(true), "true"),
            (Arc::new(Int8Array::from(vec![-7])), ValueRef::I64(-7), "-7"),
            (Arc::new(UInt64Array::from(vec![7])), ValueRef::I64(7), "7"),
            (Arc::new(half), ValueRef::F64(-1.5), "-1.5"),
            (Arc::new(Float32Array::from(vec![0.1])), ValueRef::F64(f64::from(0.1f32)), "0.1"),
            (Arc::new(Float64Array::from(vec![7.0])), ValueRef::F64(7.0), "7.0"),
            (Arc::new(decimals(&[-1_230], 2)), ValueRef::F64(-12.3), "-12.30"),
            (Arc::new(decimals(&[5], 3)), ValueRef::F64(0.005), "0.005"),
            (Arc::new(decimals(&[42], 0)), ValueRef::I64(42), "42"),
            (Arc::new(decimals(&[42], -2)), ValueRef::I64(4_200), "4200"),
            (Arc::new(StringViewArray::from(vec!["x"])), ValueRef::String("x"), "x"),
            (Arc::new(Date32Array::from(vec![19_844])), ValueRef::String("2024-05-01"), "2024-05-01"),
            (
                Arc::new(Date64Array::from(vec![1_714_521_600_000])),
                ValueRef::String("2024-05-01"),
                "2024-05-01",
            ),
            (
                Arc::new(Time32MillisecondArray::from(vec![28_800_500])),
                ValueRef::String("08:00:00.5"),
                "08:00:00.5",
            ),
            (
                Arc::new(Time64NanosecondArray::from(vec![1])),
                ValueRef::String("00:00:00.000000001"),
                "00:00:00.000000001",
            ),
            (
                Arc::new(TimestampMillisecondArray::from(vec![1_714_550_400_250])),
                ValueRef::String("2024-05-01T08:00:00.25"),
                "2024-05-01T08:00:00.25",
            ),
            (
                Arc::new(TimestampNanosecondArray::from(vec![1]).with_timezone("+02:00")),
                ValueRef::String("1970-01-01T00:00:00.000000001Z"),
                "1970-01-01T00:00:00.000000001Z",
            ),
        ];
        for (column, field, text) in cases {
            assert!(is_value(column.data_type()));
            let mut buffer = String::new();
            assert_eq!(value(column.as_ref(), 0, false, &mut buffer), Cell::Value(field), "{text}");
            assert_eq!(tag(column.as_ref(), 0).as_deref(), Some(text));
        }
    }

    #[test]
    fn inexact_values_are_reported() {
        let mut buffer = String::new();
        let huge = UInt64Array::from(vec![u64::MAX]);
        assert_eq!(value(&huge, 0, false, &mut buffer), Cell::TooLarge);
        assert_eq!(tag(&huge, 0).as_deref(), Some("18446744073709551615"), "a tag has all digits");
        let long = decimals(&[1_234_567_890_123_456_789], 2);
        assert_eq!(value(&long, 0, false, &mut buffer), Cell::Rounded(12_345_678_901_234_567.89));
        let long = decimals(&[i128::from(i64::MAX) + 1], 0);
        assert_eq!(value(&long, 0, false, &mut buffer), Cell::TooLarge);
        assert_eq!(value(&NullArray::new(1), 0, false, &mut buffer), Cell::Null);
        let bytes = BinaryArray::from(vec![b"x".as_slice()]);
        assert!(!is_value(bytes.data_type()));
        assert_eq!(tag(&bytes, 0), None);
    }
}
