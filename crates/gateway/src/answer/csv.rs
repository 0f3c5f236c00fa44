//! Comma-separated values (RFC 4180): a header, CR LF at line ends, quotes where they are needed.
//!
//! Cells are written straight to where they leave from. Only text can need quotes, and a library that looks for that in
//! every cell takes half of the time of a long answer.

use arrow_array::cast::AsArray;
use arrow_array::types::{DurationMicrosecondType, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, IntervalUnit, Schema, TimeUnit};
use model::Interval;

use super::{EncodeError, Encoder, Failure, Format};
use crate::number::{F64_BYTES_MAX, write_f64};
use crate::utc_text::UtcText;

/// Times of all kinds with microseconds; those with a time zone are UTC.
pub(super) const TEXT_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));

const LINE_END: &[u8] = b"\r\n";

pub(super) struct CsvEncoder {
    /// Names of the columns, until they have been written.
    header: Option<Vec<String>>,
    taken: Vec<u8>,
}

impl CsvEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        let names = schema.fields().iter().map(|field| field.name().clone());
        Self { header: Some(names.collect()), taken: Vec::new() }
    }

    fn header(&mut self) {
        let Some(names) = self.header.take() else { return };
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                self.taken.push(b',');
            }
            push_text(name.as_bytes(), &mut self.taken);
        }
        end_line(&mut self.taken, 0, names.len());
    }
}

impl Encoder for CsvEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.header();
        let columns = batch.columns().iter().map(Cells::new);
        let columns: Result<Vec<_>, _> = columns.collect();
        let mut columns = columns.map_err(|error| EncodeError::new(Format::Csv, error))?;
        let (count, out) = (columns.len(), &mut self.taken);
        for row in 0..batch.num_rows() {
            let line = out.len();
            for (index, column) in columns.iter_mut().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                column.write(row, out).map_err(|error| EncodeError::new(Format::Csv, error))?;
            }
            end_line(out, line, count);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EncodeError> {
        self.header();
        Ok(())
    }

    fn fail(&mut self, _failure: &Failure<'_>) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.taken)
    }
}

/// Ends the line that began at `line`. One that would be empty though it has a cell is told from one that has none.
fn end_line(out: &mut Vec<u8>, line: usize, cells: usize) {
    if cells == 1 && out.len() == line {
        out.extend_from_slice(b"\"\"");
    }
    out.extend_from_slice(LINE_END);
}

/// Writes a text, in quotes if it holds what ends cells and lines.
fn push_text(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for part in text.split_inclusive(|byte| *byte == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

/// An interval as PostgreSQL writes it: `1 day 02:03:04.5`.
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

/// How the cells of a column become text. What nearly all answers consist of goes ways that take a fraction of the
/// formatter's time and write the same, but for numbers, which are written as in JSON.
struct Cells<'a> {
    array: &'a ArrayRef,
    formatter: ArrayFormatter<'a>,
    way: Way<'a>,
}

enum Way<'a> {
    Time(&'a TimestampMicrosecondArray, UtcText),
    Number(&'a Float64Array),
    Text(&'a StringViewArray),
    Interval,
    Formatter,
}

impl<'a> Cells<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let way = match array.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, _) => Way::Time(array.as_primitive(), UtcText::new()),
            DataType::Float64 => Way::Number(array.as_primitive()),
            DataType::Utf8View => Way::Text(array.as_string_view()),
            DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Duration(_) => Way::Interval,
            _ => Way::Formatter,
        };
        Ok(Self { array, formatter: ArrayFormatter::try_new(array, &TEXT_FORMAT)?, way })
    }

    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.array.is_null(row) {
            return Ok(());
        }
        let written = match &mut self.way {
            Way::Time(times, text) => text.write(times.value(row), out),
            Way::Number(numbers) => push_number(numbers.value(row), out),
            Way::Text(texts) => {
                push_text(texts.value(row).as_bytes(), out);
                true
            }
            Way::Interval => {
                push_text(interval_text(self.array, row)?.as_bytes(), out);
                true
            }
            Way::Formatter => false,
        };
        if !written {
            push_text(self.text(row)?.as_bytes(), out);
        }
        Ok(())
    }

    /// By the formatter; the number of microseconds for a time outside of its calendar, as in JSON.
    fn text(&self, row: usize) -> Result<String, ArrowError> {
        match (self.formatter.value(row).try_to_string(), &self.way) {
            (Err(_), Way::Time(times, _)) => Ok(times.value(row).to_string()),
            (text, _) => text,
        }
    }
}

/// Writes a finite number; `false`, and nothing, for another.
fn push_number(number: f64, out: &mut Vec<u8>) -> bool {
    if !number.is_finite() {
        return false;
    }
    let mut room = [0; F64_BYTES_MAX];
    let length = write_f64(number, &mut room);
    out.extend_from_slice(&room[..length]);
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn text_of(array: ArrayRef) -> String {
        let batch = RecordBatch::try_from_iter([("a", Arc::clone(&array)), ("b", array)]).unwrap();
        let mut encoder = CsvEncoder::new(&batch.schema());
        encoder.rows(&batch).unwrap();
        String::from_utf8(encoder.take()).unwrap()
    }

    /// What the library reads from it.
    fn read(text: &str) -> Vec<Vec<String>> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn times_outside_of_the_calendar_are_numbers() {
        let times = TimestampMicrosecondArray::from(vec![i64::MAX, 0]).with_timezone("UTC");
        let first = "1970-01-01T00:00:00.000000Z";
        let expected = format!("a,b\r\n{0},{0}\r\n{first},{first}\r\n", i64::MAX);
        assert_eq!(text_of(Arc::new(times)), expected);
    }

    proptest! {
        #[test]
        fn texts_are_what_the_library_writes(texts in prop::collection::vec("[a,\"\r\n é]{0,6}", 1..5)) {
            let written = text_of(Arc::new(StringViewArray::from_iter_values(&texts)));
            let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
            writer.write_record(["a", "b"]).unwrap();
            texts.iter().for_each(|text| writer.write_record([text, text]).unwrap());
            prop_assert_eq!(&written, &String::from_utf8(writer.into_inner().unwrap()).unwrap());
            prop_assert_eq!(read(&written), texts.into_iter().map(|text| vec![text.clone(), text]).collect::<Vec<_>>());
        }

        #[test]
        fn numbers_are_what_json_has(numbers in prop::collection::vec(any::<f64>(), 1..5)) {
            let array: ArrayRef = Arc::new(Float64Array::from(numbers.clone()));
            let formatter = ArrayFormatter::try_new(&array, &TEXT_FORMAT).unwrap();
            let text = |(row, number): (usize, &f64)| match number.is_finite() {
                true => serde_json::to_string(number).unwrap(),
                false => formatter.value(row).to_string(),
            };
            let expected: Vec<_> = numbers.iter().enumerate().map(|number| vec![text(number); 2]).collect();
            prop_assert_eq!(read(&text_of(Arc::clone(&array))), expected);
        }
    }
}
