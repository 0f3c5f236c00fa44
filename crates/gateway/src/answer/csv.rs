//! Comma-separated values (RFC 4180): a header, CR LF at line ends, quotes where they are needed.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};

use super::plain::Plain;
use super::utc_text::UtcText;
use super::{EncodeError, Encoder, Failure, Format};
use crate::number::{F64_BYTES_MAX, write_few_digits};

/// Times of all kinds with microseconds; those with a time zone are UTC.
pub(super) const TEXT_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));

pub(super) struct CsvEncoder {
    plain: Plain,
    writer: csv::Writer<Vec<u8>>,
    header_written: bool,
    taken: Vec<u8>,
}

impl CsvEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        Self { plain: Plain::new(schema), writer: writer(), header_written: false, taken: Vec::new() }
    }

    fn header(&mut self) -> Result<(), EncodeError> {
        if !std::mem::replace(&mut self.header_written, true) {
            let names = self.plain.schema().fields().iter().map(|field| field.name().as_bytes());
            self.writer.write_record(names).map_err(refused)?;
        }
        Ok(())
    }

    /// Empties the writer's own buffer.
    fn drain(&mut self) -> Result<(), EncodeError> {
        let written = std::mem::replace(&mut self.writer, writer()).into_inner();
        let bytes = written.map_err(|error| refused(error.into_error().into()))?;
        self.taken.extend_from_slice(&bytes);
        Ok(())
    }
}

fn writer() -> csv::Writer<Vec<u8>> {
    csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new())
}

impl Encoder for CsvEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.header()?;
        let error = |error: ArrowError| EncodeError::new(Format::Csv, error);
        let batch = self.plain.batch(batch).map_err(error)?;
        let columns = batch.columns().iter().map(Cells::new);
        let mut columns = columns.collect::<Result<Vec<_>, _>>().map_err(error)?;
        let mut cell = Vec::new();
        for row in 0..batch.num_rows() {
            for column in &mut columns {
                cell.clear();
                column.write(row, &mut cell).map_err(|error| refused(error.into()))?;
                self.writer.write_field(&cell).map_err(refused)?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(refused)?;
        }
        self.drain()
    }

    fn finish(&mut self) -> Result<(), EncodeError> {
        self.header()?;
        self.drain()
    }

    fn fail(&mut self, _failure: &Failure<'_>) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.taken)
    }
}

/// How the cells of a column become text. What nearly all answers consist of goes ways that take a fraction of the
/// formatter's time and write the same.
struct Cells<'a> {
    array: &'a ArrayRef,
    formatter: ArrayFormatter<'a>,
    way: Way<'a>,
}

enum Way<'a> {
    Time(&'a TimestampMicrosecondArray, UtcText),
    Number(&'a Float64Array),
    Text(&'a StringArray),
    Formatter,
}

impl<'a> Cells<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let way = match array.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, _) => Way::Time(array.as_primitive(), UtcText::new()),
            DataType::Float64 => Way::Number(array.as_primitive()),
            DataType::Utf8 => Way::Text(array.as_string()),
            _ => Way::Formatter,
        };
        Ok(Self { array, formatter: ArrayFormatter::try_new(array, &TEXT_FORMAT)?, way })
    }

    fn write(&mut self, row: usize, cell: &mut Vec<u8>) -> std::io::Result<()> {
        if self.array.is_null(row) {
            return Ok(());
        }
        let written = match &mut self.way {
            Way::Time(times, text) => text.write(times.value(row), cell),
            Way::Number(numbers) => {
                let mut room = [0; F64_BYTES_MAX];
                let length = write_few_digits(numbers.value(row), &mut room);
                cell.extend_from_slice(&room[..length.unwrap_or(0)]);
                length.is_some()
            }
            Way::Text(texts) => {
                cell.extend_from_slice(texts.value(row).as_bytes());
                true
            }
            Way::Formatter => false,
        };
        if written { Ok(()) } else { write!(cell, "{}", self.formatter.value(row)) }
    }
}

fn refused(error: csv::Error) -> EncodeError {
    EncodeError::new(Format::Csv, ArrowError::CsvError(error.to_string()))
}
