//! JSON: one object with the columns, the rows as arrays, and the number of rows or an error.
//!
//! ```text
//! {"columns":[{"name":"ts","type":"timestamp"},{"name":"speed","type":"f64"}],
//! "rows":[
//! ["2026-11-21T15:40:00.000000Z",52.5],
//! ["2026-11-21T15:40:01.000000Z",null]
//! ],"row_count":2}
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::ArrayFormatter;
use arrow_schema::{ArrowError, DataType, Field, IntervalUnit, Schema, TimeUnit};
use model::calendar::Moment;
use serde_json::value::RawValue;

use super::cell_text::{TEXT_FORMAT, interval_text};
use super::encoder::{EncodeError, Encoder, Failure};
use super::format::Format;
use super::limits::JSON_INTEGER_MAX;
use super::plain::Plain;
use crate::text::UtcText;

/// Key in the metadata of a column for its kind, and the value for JSON stored as text.
const KIND: (&str, &str) = ("tachograph.kind", "json");

pub(super) struct JsonEncoder {
    plain: Plain,
    /// For each column: whether its text is JSON.
    is_json: Vec<bool>,
    out: Vec<u8>,
    rows: u64,
}

impl JsonEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut out = b"{\"columns\":[".to_vec();
        for (index, field) in schema.fields().iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",{\"name\":" } else { b"{\"name\":" });
            text(field.name(), &mut out);
            out.extend_from_slice(b",\"type\":\"");
            out.extend_from_slice(type_name(field).as_bytes());
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b"],\n\"rows\":[");
        let is_json = schema.fields().iter().map(|field| is_json(field)).collect();
        Self { plain: Plain::new(schema), is_json, out, rows: 0 }
    }
}

impl Encoder for JsonEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        let batch = self.plain.batch(batch).map_err(refused)?;
        let columns = batch.columns().iter().map(exact).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        for row in 0..batch.num_rows() {
            self.out.extend_from_slice(if self.rows > 0 { b",\n[" } else { b"\n[" });
            self.rows += 1;
            for (index, (column, is_json)) in columns.iter().zip(&self.is_json).enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                if *is_json && !column.is_null(row) {
                    json(column.as_string::<i32>().value(row), &mut self.out);
                } else {
                    value(column, row, &mut self.out).map_err(refused)?;
                }
            }
            self.out.push(b']');
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EncodeError> {
        self.out.extend_from_slice(format!("\n],\"row_count\":{}}}\n", self.rows).as_bytes());
        Ok(())
    }

    fn fail(&mut self, failure: &Failure<'_>) -> bool {
        self.out.extend_from_slice(b"\n],\"error\":");
        let error = serde_json::json!({
            "status": failure.status,
            "errorCode": failure.error_code,
            "message": failure.message,
        });
        self.out.extend_from_slice(error.to_string().as_bytes());
        self.out.extend_from_slice(b"}\n");
        true
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn refused(error: ArrowError) -> EncodeError {
    EncodeError::new(Format::Json, error)
}

/// The name of a column's type in answers.
fn type_name(field: &Field) -> &'static str {
    if is_json(field) { "json" } else { name_of(field.data_type()) }
}

fn is_json(field: &Field) -> bool {
    let (key, kind) = KIND;
    matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View)
        && field.metadata().get(key).is_some_and(|value| value == kind)
}

fn name_of(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => "i64",
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => "i64",
        DataType::UInt64 => "u64",
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "f64",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Timestamp(..) => "timestamp",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Duration(_) | DataType::Interval(_) => "interval",
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "decimal",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "binary"
        }
        DataType::Dictionary(_, values) => name_of(values),
        DataType::RunEndEncoded(_, values) => name_of(values.data_type()),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "list",
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "object",
    }
}

/// Times of any unit as microseconds, so that there is one form for all.
fn exact(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(ArrayRef::clone(column)),
        DataType::Timestamp(_, zone) => {
            arrow_cast::cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        _ => Ok(ArrayRef::clone(column)),
    }
}

fn value(column: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    if column.is_null(row) || *column.data_type() == DataType::Null {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match column.data_type() {
        DataType::Boolean => {
            out.extend_from_slice(if column.as_boolean().value(row) { b"true" } else { b"false" });
        }
        DataType::Int8 => signed(column.as_primitive::<Int8Type>().value(row).into(), out),
        DataType::Int16 => signed(column.as_primitive::<Int16Type>().value(row).into(), out),
        DataType::Int32 => signed(column.as_primitive::<Int32Type>().value(row).into(), out),
        DataType::Int64 => signed(column.as_primitive::<Int64Type>().value(row), out),
        DataType::UInt8 => unsigned(column.as_primitive::<UInt8Type>().value(row).into(), out),
        DataType::UInt16 => unsigned(column.as_primitive::<UInt16Type>().value(row).into(), out),
        DataType::UInt32 => unsigned(column.as_primitive::<UInt32Type>().value(row).into(), out),
        DataType::UInt64 => unsigned(column.as_primitive::<UInt64Type>().value(row), out),
        DataType::Float16 => float(column.as_primitive::<Float16Type>().value(row).into(), out),
        DataType::Float32 => short_float(column.as_primitive::<Float32Type>().value(row), out),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row), out),
        // Sums of integers are whole numbers.
        DataType::Decimal128(_, 0) => {
            let number = column.as_primitive::<Decimal128Type>().value(row);
            integer(number, number.unsigned_abs() > JSON_INTEGER_MAX.into(), out);
        }
        DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Duration(_) => {
            text(&interval_text(column, row)?, out);
        }
        DataType::Utf8 => text(column.as_string::<i32>().value(row), out),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row), out),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            time(column.as_primitive::<TimestampMicrosecondType>().value(row), out);
        }
        DataType::List(_) => list(&column.as_list::<i32>().value(row), out)?,
        DataType::LargeList(_) => list(&column.as_list::<i64>().value(row), out)?,
        DataType::FixedSizeList(..) => list(&column.as_fixed_size_list().value(row), out)?,
        DataType::Struct(fields) => {
            for (index, (field, member)) in fields.iter().zip(column.as_struct().columns()).enumerate() {
                out.push(if index > 0 { b',' } else { b'{' });
                text(field.name(), out);
                out.push(b':');
                value(&exact(member)?, row, out)?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
        _ => {
            let formatter = ArrayFormatter::try_new(column, &TEXT_FORMAT)?;
            text(&formatter.value(row).try_to_string()?, out);
        }
    }
    Ok(())
}

fn list(items: &ArrayRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let items = exact(items)?;
    out.push(b'[');
    for index in 0..items.len() {
        if index > 0 {
            out.push(b',');
        }
        value(&items, index, out)?;
    }
    out.push(b']');
    Ok(())
}

fn signed(number: i64, out: &mut Vec<u8>) {
    integer(number, number.unsigned_abs() > JSON_INTEGER_MAX, out);
}

fn unsigned(number: u64, out: &mut Vec<u8>) {
    integer(number, number > JSON_INTEGER_MAX, out);
}

fn integer(number: impl std::fmt::Display, quoted: bool, out: &mut Vec<u8>) {
    let quote = if quoted { "\"" } else { "" };
    out.extend_from_slice(format!("{quote}{number}{quote}").as_bytes());
}

fn float(number: f64, out: &mut Vec<u8>) {
    match number {
        finite if finite.is_finite() => {
            serde_json::to_writer(out, &finite).expect("BUG: a finite number is JSON, and memory takes it");
        }
        other => infinite(other, out),
    }
}

/// With the digits that a single-precision number has.
fn short_float(number: f32, out: &mut Vec<u8>) {
    if number.is_finite() {
        serde_json::to_writer(out, &number).expect("BUG: a finite number is JSON, and memory takes it");
    } else {
        infinite(number.into(), out);
    }
}

/// JSON has no number for these; null would mean a missing value.
fn infinite(number: f64, out: &mut Vec<u8>) {
    let name: &[u8] = match number {
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => b"\"NaN\"",
    };
    out.extend_from_slice(name);
}

fn text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("BUG: text is JSON, and memory takes it");
}

/// Writes JSON text unchanged. Text that is not JSON, which no door writes, becomes a string.
fn json(text: &str, out: &mut Vec<u8>) {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => out.extend_from_slice(raw.get().as_bytes()),
        Err(_) => self::text(text, out),
    }
}

/// RFC 3339 with all six digits of microseconds. A time outside of the calendar (years -9999 to 9999) is a number of microseconds.
fn time(micros: i64, out: &mut Vec<u8>) {
    let Some(moment) = Moment::from_micros(micros) else {
        return out.extend_from_slice(micros.to_string().as_bytes());
    };
    out.push(b'"');
    if !UtcText::new().write(micros, out) {
        out.extend_from_slice(moment.to_micros_text().as_bytes());
    }
    out.push(b'"');
}
