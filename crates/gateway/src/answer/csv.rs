//! Comma-separated values (RFC 4180): a header, CR LF at line ends, quotes where they are needed.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Schema};

use super::plain::Plain;
use super::{EncodeError, Encoder, Failure, Format};

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
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &TEXT_FORMAT));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(error)?;
        let mut cell = Vec::new();
        for row in 0..batch.num_rows() {
            for column in &columns {
                cell.clear();
                write!(cell, "{}", column.value(row)).map_err(|error| refused(error.into()))?;
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

fn refused(error: csv::Error) -> EncodeError {
    EncodeError::new(Format::Csv, ArrowError::CsvError(error.to_string()))
}
