//! Comma-separated values (RFC 4180) with a header, CR LF at line ends, and quotes where they are necessary.
//!
//! The encoder writes cells directly into the output. Only text can need quotes; a library that checks every cell takes half
//! of the time of a long answer.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow_cast::display::ArrayFormatter;
use arrow_schema::{ArrowError, DataType, IntervalUnit, Schema, TimeUnit};
use hub::csv::{CsvLines, Dialect};

use super::cell_text::{TEXT_FORMAT, interval_text};
use super::encoder::{EncodeError, Encoder, Failure};
use super::format::Format;
use crate::text::{F64_BYTES_MAX, UtcText, write_f64};

pub(super) struct CsvEncoder {
    /// Names of the columns, until they are written.
    header: Option<Vec<String>>,
    lines: CsvLines,
}

impl CsvEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        let names = schema.fields().iter().map(|field| field.name().clone());
        Self { header: Some(names.collect()), lines: CsvLines::new(Dialect::ANSWER) }
    }

    fn header(&mut self) {
        let Some(names) = self.header.take() else { return };
        names.iter().for_each(|name| self.lines.text_cell(name.as_bytes()));
        self.lines.end_line();
    }
}

impl Encoder for CsvEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.header();
        let columns = batch.columns().iter().map(Cells::new);
        let columns: Result<Vec<_>, _> = columns.collect();
        let mut columns = columns.map_err(|error| EncodeError::new(Format::Csv, error))?;
        for row in 0..batch.num_rows() {
            for column in &mut columns {
                self.lines.begin_cell();
                column.write(row, &mut self.lines).map_err(|error| EncodeError::new(Format::Csv, error))?;
            }
            self.lines.end_line();
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
        self.lines.take()
    }
}

/// Writes the cells of a column. Common types have code of their own that is several times faster than the formatter and
/// writes the same text; but numbers are written as in JSON.
struct Cells<'a> {
    array: &'a ArrayRef,
    formatter: ArrayFormatter<'a>,
    writer: CellWriter<'a>,
}

enum CellWriter<'a> {
    Time(&'a TimestampMicrosecondArray, UtcText),
    Number(&'a Float64Array),
    Text(&'a StringViewArray),
    Interval,
    Formatter,
}

impl<'a> Cells<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let writer = match array.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                CellWriter::Time(array.as_primitive(), UtcText::new())
            }
            DataType::Float64 => CellWriter::Number(array.as_primitive()),
            DataType::Utf8View => CellWriter::Text(array.as_string_view()),
            DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Duration(_) => CellWriter::Interval,
            _ => CellWriter::Formatter,
        };
        Ok(Self { array, formatter: ArrayFormatter::try_new(array, &TEXT_FORMAT)?, writer })
    }

    fn write(&mut self, row: usize, lines: &mut CsvLines) -> Result<(), ArrowError> {
        if self.array.is_null(row) {
            return Ok(());
        }
        let written = match &mut self.writer {
            CellWriter::Time(times, text) => text.write(times.value(row), lines.out()),
            CellWriter::Number(numbers) => push_number(numbers.value(row), lines.out()),
            CellWriter::Text(texts) => {
                lines.text(texts.value(row).as_bytes());
                true
            }
            CellWriter::Interval => {
                lines.text(interval_text(self.array, row)?.as_bytes());
                true
            }
            CellWriter::Formatter => false,
        };
        if !written {
            lines.text(self.text(row)?.as_bytes());
        }
        Ok(())
    }

    /// The text of the formatter. For a time outside of its calendar the number of microseconds, as in JSON.
    fn text(&self, row: usize) -> Result<String, ArrowError> {
        match (self.formatter.value(row).try_to_string(), &self.writer) {
            (Err(_), CellWriter::Time(times, _)) => Ok(times.value(row).to_string()),
            (text, _) => text,
        }
    }
}

/// Writes a finite number. For any other it writes nothing and returns `false`.
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

    /// The values that the library parses from the line.
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
        fn texts_equal_those_of_the_library(texts in prop::collection::vec("[a,\"\r\n é]{0,6}", 1..5)) {
            let written = text_of(Arc::new(StringViewArray::from_iter_values(&texts)));
            let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
            writer.write_record(["a", "b"]).unwrap();
            texts.iter().for_each(|text| writer.write_record([text, text]).unwrap());
            prop_assert_eq!(&written, &String::from_utf8(writer.into_inner().unwrap()).unwrap());
            prop_assert_eq!(read(&written), texts.into_iter().map(|text| vec![text.clone(), text]).collect::<Vec<_>>());
        }

        #[test]
        fn numbers_have_the_digits_of_json(numbers in prop::collection::vec(any::<f64>(), 1..5)) {
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
