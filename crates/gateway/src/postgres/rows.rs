//! Writes rows of answers in PostgreSQL's forms.
//!
//! This code writes values of the types that tables have, because an answer can have millions of them. The library writes values of
//! other types.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationNanosecondType, Int8Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_pg::encoder::encode_value;
use arrow_schema::{DataType, FieldRef, IntervalUnit, TimeUnit};
use bytes::{BufMut, BytesMut};
use model::Interval;
use pgwire::api::Type;
use pgwire::api::results::{DataRowEncoder, FieldFormat, FieldInfo};

use super::arrays::{Lists, element_of};
use super::error::PgError;
use super::numeric;
use super::value_text::{TimeText, write_day, write_f32, write_f64, write_time_of_day};
use super::values::{EPOCH_DAYS, EPOCH_US, Fields};

/// The length of a NULL.
const NULL: i32 = -1;
const LENGTH_BYTES: usize = size_of::<i32>();

/// Some rows of an answer.
pub(super) struct Page {
    columns: Vec<Column>,
    rows: usize,
}

impl Page {
    /// `fields` are the columns as the client knows them.
    pub(super) fn new(batch: &RecordBatch, fields: &Fields) -> Self {
        let schema = batch.schema_ref();
        let columns = batch.columns().iter().zip(schema.fields()).zip(fields.iter());
        let columns = columns.map(|((array, field), told)| Column::new(array, field, told));
        Self { columns: columns.collect(), rows: batch.num_rows() }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the body of a DataRow. After an error the body is incomplete.
    pub(super) fn write(&mut self, row: usize, out: &mut BytesMut) -> Result<(), PgError> {
        out.put_u16(self.columns.len() as u16);
        self.columns.iter_mut().try_for_each(|column| column.write(row, out))
    }
}

struct Column {
    array: ArrayRef,
    writer: Writer,
}

/// The writer of the values of a column.
enum Writer {
    Own { values: Values, is_binary: bool },
    Library { field: FieldRef, told: FieldInfo, encoder: DataRowEncoder },
}

impl Column {
    fn new(array: &ArrayRef, field: &FieldRef, told: &FieldInfo) -> Self {
        let writer = match Values::of(array, told.datatype()) {
            Some(values) => Writer::Own { values, is_binary: told.format() == FieldFormat::Binary },
            None => Writer::Library {
                field: Arc::clone(field),
                told: told.clone(),
                encoder: DataRowEncoder::new(Arc::new(vec![told.clone()])),
            },
        };
        Self { array: Arc::clone(array), writer }
    }

    /// Appends the length of a value, and the value.
    fn write(&mut self, row: usize, out: &mut BytesMut) -> Result<(), PgError> {
        // The library does not check for null in all types.
        if self.array.is_null(row) {
            out.put_i32(NULL);
            return Ok(());
        }
        let (values, is_binary) = match &mut self.writer {
            Writer::Own { values, is_binary } => (values, *is_binary),
            Writer::Library { field, told, encoder } => {
                encode_value(encoder, &self.array, row, field, told)?;
                out.put_slice(&encoder.take_row().data);
                return Ok(());
            }
        };
        let start = out.len();
        out.put_i32(0);
        if is_binary {
            values.write_binary(row, out)?;
        } else {
            values.write_text(row, out)?;
        }
        // The length fits, because the length of the row is checked.
        let length = (out.len() - start - LENGTH_BYTES) as i32;
        out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// Values of a column that this code writes.
enum Values {
    Bool(BooleanArray),
    I16(Int16Array),
    I32(Int32Array),
    I64(Int64Array),
    F32(Float32Array),
    F64(Float64Array),
    Date(Date32Array),
    Text(StringArray),
    TextView(StringViewArray),
    Time {
        counts: Int64Array,
        unit: TimeUnit,
        text: TimeText,
    },
    /// Times of day, in their unit.
    TimeOfDay(Int64Array, TimeUnit),
    Numeric {
        digits: Decimal128Array,
        scale: u8,
    },
    Interval(IntervalMonthDayNanoArray),
    /// Microseconds between two times.
    Difference(DurationMicrosecondArray),
    Lists {
        lists: Lists,
        elements: Box<Values>,
    },
}

impl Values {
    /// The values of an array, if the client expects PostgreSQL's type for it.
    fn of(array: &ArrayRef, told: &Type) -> Option<Self> {
        Some(match (array.data_type(), told) {
            (DataType::Boolean, &Type::BOOL) => Self::Bool(array.as_boolean().clone()),
            // PostgreSQL has no one-byte integers, so the client expects two bytes.
            (DataType::Int8, &Type::INT2) => Self::I16(array.as_primitive::<Int8Type>().unary(i16::from)),
            (DataType::Int16, &Type::INT2) => Self::I16(array.as_primitive().clone()),
            (DataType::Int32, &Type::INT4) => Self::I32(array.as_primitive().clone()),
            (DataType::Int64, &Type::INT8) => Self::I64(array.as_primitive().clone()),
            (DataType::Float32, &Type::FLOAT4) => Self::F32(array.as_primitive().clone()),
            (DataType::Float64, &Type::FLOAT8) => Self::F64(array.as_primitive().clone()),
            (DataType::Date32, &Type::DATE) => Self::Date(array.as_primitive().clone()),
            (DataType::Utf8, &Type::TEXT) => Self::Text(array.as_string().clone()),
            (DataType::Utf8View, &Type::TEXT) => Self::TextView(array.as_string_view().clone()),
            (DataType::Timestamp(unit, zone), &Type::TIMESTAMP | &Type::TIMESTAMPTZ)
                if zone.as_deref().is_none_or(|zone| ["UTC", "+00:00"].contains(&zone)) =>
            {
                Self::Time { counts: counts(array, *unit), unit: *unit, text: TimeText::new(zone.is_some()) }
            }
            (DataType::Time64(TimeUnit::Microsecond), &Type::TIME) => {
                let counts = array.as_primitive::<Time64MicrosecondType>().reinterpret_cast();
                Self::TimeOfDay(counts, TimeUnit::Microsecond)
            }
            (DataType::Time64(TimeUnit::Nanosecond), &Type::TIME) => {
                let counts = array.as_primitive::<Time64NanosecondType>().reinterpret_cast();
                Self::TimeOfDay(counts, TimeUnit::Nanosecond)
            }
            (DataType::Decimal128(_, scale @ 0..), &Type::NUMERIC) => {
                Self::Numeric { digits: array.as_primitive().clone(), scale: scale.unsigned_abs() }
            }
            (DataType::Interval(IntervalUnit::MonthDayNano), &Type::INTERVAL) => {
                Self::Interval(array.as_primitive().clone())
            }
            (DataType::Duration(TimeUnit::Microsecond), &Type::INTERVAL) => {
                Self::Difference(array.as_primitive().clone())
            }
            (DataType::Duration(TimeUnit::Nanosecond), &Type::INTERVAL) => {
                let nanos = array.as_primitive::<DurationNanosecondType>();
                Self::Difference(nanos.unary(|nanos| nanos.div_euclid(1_000)))
            }
            (DataType::List(_), told) => {
                let element = element_of(told)?;
                let lists = Lists::of(array, element)?;
                let elements = Box::new(Self::of(lists.values(), element)?);
                Self::Lists { lists, elements }
            }
            _ => return None,
        })
    }

    /// The value of an interval column.
    fn interval(&self, row: usize) -> Interval {
        match self {
            Self::Interval(array) => {
                let interval = array.value(row);
                let micros = interval.nanoseconds / 1_000;
                Interval { months: interval.months, days: interval.days, micros }
            }
            Self::Difference(array) => Interval::of_difference(array.value(row)),
            _ => Interval::default(),
        }
    }

    fn write_binary(&self, row: usize, out: &mut BytesMut) -> Result<(), PgError> {
        match self {
            Self::Bool(array) => out.put_u8(array.value(row).into()),
            Self::I16(array) => out.put_i16(array.value(row)),
            Self::I32(array) => out.put_i32(array.value(row)),
            Self::I64(array) => out.put_i64(array.value(row)),
            Self::F32(array) => out.put_f32(array.value(row)),
            Self::F64(array) => out.put_f64(array.value(row)),
            Self::Date(array) => {
                let since_2000 = array.value(row).checked_sub(EPOCH_DAYS);
                out.put_i32(since_2000.ok_or_else(|| out_of_range("date"))?);
            }
            Self::Text(array) => out.put_slice(array.value(row).as_bytes()),
            Self::TextView(array) => out.put_slice(array.value(row).as_bytes()),
            Self::Time { counts, unit, .. } => {
                let since_2000 = micros(counts.value(row), *unit)?.checked_sub(EPOCH_US);
                out.put_i64(since_2000.ok_or_else(|| out_of_range("timestamp"))?);
            }
            Self::TimeOfDay(counts, unit) => out.put_i64(micros(counts.value(row), *unit)?),
            Self::Numeric { digits, scale } => numeric::write_binary(digits.value(row), *scale, out),
            Self::Interval(_) | Self::Difference(_) => {
                let Interval { months, days, micros } = self.interval(row);
                out.put_i64(micros);
                out.put_i32(days);
                out.put_i32(months);
            }
            Self::Lists { lists, elements } => {
                lists.write_binary(row, out, |index, out| elements.write_binary(index, out))?;
            }
        }
        Ok(())
    }

    fn write_text(&mut self, row: usize, out: &mut BytesMut) -> Result<(), PgError> {
        match self {
            Self::Bool(array) => out.put_u8(if array.value(row) { b't' } else { b'f' }),
            Self::I16(array) => write_integer(array.value(row).into(), out),
            Self::I32(array) => write_integer(array.value(row).into(), out),
            Self::I64(array) => write_integer(array.value(row), out),
            Self::F32(array) => write_f32(array.value(row), out),
            Self::F64(array) => write_f64(array.value(row), out),
            Self::Date(array) => write_day(array.value(row), out),
            Self::Text(array) => out.put_slice(array.value(row).as_bytes()),
            Self::TextView(array) => out.put_slice(array.value(row).as_bytes()),
            Self::Time { counts, unit, text } => text.write(micros(counts.value(row), *unit)?, out),
            Self::TimeOfDay(counts, unit) => write_time_of_day(micros(counts.value(row), *unit)?, out),
            Self::Numeric { digits, scale } => numeric::write_text(digits.value(row), *scale, out),
            Self::Interval(_) | Self::Difference(_) => {
                write!(out, "{}", self.interval(row)).expect("BUG: memory takes text");
            }
            Self::Lists { lists, elements } => {
                lists.write_text(row, out, |index, out| elements.write_text(index, out))?;
            }
        }
        Ok(())
    }
}

fn write_integer(number: i64, out: &mut BytesMut) {
    write!(out, "{number}").expect("BUG: memory takes text");
}

/// Times as counts of their unit since 1970.
fn counts(array: &ArrayRef, unit: TimeUnit) -> Int64Array {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().reinterpret_cast(),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().reinterpret_cast(),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().reinterpret_cast(),
    }
}

/// A time in microseconds.
fn micros(count: i64, unit: TimeUnit) -> Result<i64, PgError> {
    let micros = match unit {
        TimeUnit::Second => count.checked_mul(1_000_000),
        TimeUnit::Millisecond => count.checked_mul(1_000),
        TimeUnit::Microsecond => Some(count),
        TimeUnit::Nanosecond => Some(count.div_euclid(1_000)),
    };
    micros.ok_or_else(|| out_of_range("timestamp"))
}

fn out_of_range(what: &str) -> PgError {
    PgError::new("22008", format!("{what} out of range"))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::IntervalMonthDayNano;
    use arrow_array::{
        Int8Array, IntervalMonthDayNanoArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray,
    };
    use arrow_schema::{Field, Schema};
    use wire::postgres::ValueFormat;

    use super::super::values::fields;
    use super::*;

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("bool", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            ("i8", Arc::new(Int8Array::from(vec![Some(-7), None]))),
            ("i16", Arc::new(Int16Array::from(vec![Some(-7), None]))),
            ("i32", Arc::new(Int32Array::from(vec![Some(-7), None]))),
            ("i64", Arc::new(Int64Array::from(vec![Some(-7), None]))),
            ("f32", Arc::new(Float32Array::from(vec![Some(1.5), None]))),
            ("f64", Arc::new(Float64Array::from(vec![Some(60.0), None]))),
            ("text", Arc::new(StringArray::from(vec![Some("ä"), None]))),
            ("view", Arc::new(StringViewArray::from(vec![Some(""), None]))),
            ("date", Arc::new(Date32Array::from(vec![Some(10_958), None]))),
            (
                "interval",
                Arc::new(IntervalMonthDayNanoArray::from(vec![
                    Some(IntervalMonthDayNano::new(0, 1, 0)),
                    None,
                ])),
            ),
            ("time", {
                let times = TimestampMicrosecondArray::from(vec![Some(EPOCH_US + 1_500_000), None]);
                Arc::new(times.with_timezone("UTC"))
            }),
        ];
        let of = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(of).collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
    }

    /// The values of a row.
    fn written(format: ValueFormat, row: usize) -> Vec<Option<Vec<u8>>> {
        let batch = batch();
        let mut page = Page::new(&batch, &fields(batch.schema_ref(), &[format]).unwrap());
        assert_eq!(page.rows(), 2);
        let mut out = BytesMut::new();
        page.write(row, &mut out).unwrap();
        let mut bytes = &out[..];
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at(count);
            bytes = rest;
            taken
        };
        let columns = u16::from_be_bytes(take(2).try_into().unwrap());
        let values = (0..columns).map(|_| {
            let length = i32::from_be_bytes(take(4).try_into().unwrap());
            usize::try_from(length).ok().map(|length| take(length).to_vec())
        });
        let values = values.collect();
        assert_eq!(bytes, b"");
        values
    }

    #[test]
    fn values_of_all_types_have_text_and_binary_forms() {
        let of = |values: &[&[u8]]| values.iter().map(|value| Some(value.to_vec())).collect::<Vec<_>>();
        let time = b"2000-01-01 00:00:01.5+00".as_slice();
        let text = [
            b"t".as_slice(),
            b"-7",
            b"-7",
            b"-7",
            b"-7",
            b"1.5",
            b"60",
            "ä".as_bytes(),
            b"",
            b"2000-01-02",
            b"1 day",
            time,
        ];
        assert_eq!(written(ValueFormat::Text, 0), of(&text));
        let binary = [
            b"\x01".as_slice(),
            &(-7_i16).to_be_bytes(),
            &(-7_i16).to_be_bytes(),
            &(-7_i32).to_be_bytes(),
            &(-7_i64).to_be_bytes(),
            &1.5_f32.to_be_bytes(),
            &60_f64.to_be_bytes(),
            "ä".as_bytes(),
            b"",
            &1_i32.to_be_bytes(),
            // Microseconds, days, months.
            &[[0; 8].as_slice(), &1_i32.to_be_bytes(), &[0; 4]].concat(),
            &1_500_000_i64.to_be_bytes(),
        ];
        assert_eq!(written(ValueFormat::Binary, 0), of(&binary));
        for format in [ValueFormat::Text, ValueFormat::Binary] {
            assert_eq!(written(format, 1), vec![None; 12]);
        }
    }

    #[test]
    fn times_of_all_units_are_the_same_text() {
        let of = |array: ArrayRef| {
            let field = Field::new("time", array.data_type().clone(), true);
            let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
            let mut page = Page::new(&batch, &fields(batch.schema_ref(), &[]).unwrap());
            let mut out = BytesMut::new();
            page.write(0, &mut out).unwrap();
            String::from_utf8(out[2 + LENGTH_BYTES..].to_vec()).unwrap()
        };
        let seconds = 1_768_464_000_i64;
        let arrays: [ArrayRef; 4] = [
            Arc::new(TimestampSecondArray::from(vec![seconds])),
            Arc::new(TimestampMillisecondArray::from(vec![seconds * 1_000])),
            Arc::new(TimestampMicrosecondArray::from(vec![seconds * 1_000_000])),
            Arc::new(TimestampNanosecondArray::from(vec![seconds * 1_000_000_000 + 999])),
        ];
        for array in arrays {
            assert_eq!(of(array), "2026-01-15 08:00:00");
        }
        let now = TimestampNanosecondArray::from(vec![seconds * 1_000_000_000 + 250_000_000]);
        assert_eq!(of(Arc::new(now.with_timezone("+00:00"))), "2026-01-15 08:00:00.25+00");
    }

    #[test]
    fn only_times_outside_of_postgresqls_range_are_errors() {
        let page = |array: ArrayRef, format| {
            let field = Field::new("time", array.data_type().clone(), true);
            let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
            Page::new(&batch, &fields(batch.schema_ref(), &[format]).unwrap())
        };
        let mut out = BytesMut::new();
        let early = Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN]));
        let mut binary = page(early, ValueFormat::Binary);
        assert_eq!(binary.write(0, &mut out).unwrap_err().code, "22008");
        let late = Arc::new(TimestampSecondArray::from(vec![i64::MAX, 0]));
        for format in [ValueFormat::Text, ValueFormat::Binary] {
            let mut of_seconds = page(Arc::clone(&late) as _, format);
            assert_eq!(of_seconds.write(0, &mut out).unwrap_err().code, "22008");
            assert_eq!(of_seconds.write(1, &mut out), Ok(()));
        }
    }
}
