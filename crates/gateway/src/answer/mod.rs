//! The answer of a query as bytes: JSON, CSV, an Arrow stream, a Parquet file.
//!
//! An [`Encoder`] takes one batch at a time and keeps nothing of it but what the format demands (Parquet: one unfinished
//! row group), so that an answer of any length passes through a bounded memory.

mod arrow;
mod csv;
mod json;
pub mod limits;
mod parquet;
mod pieces;
mod plain;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

pub use pieces::{AnswerError, CutOff, Pieces, pieces};

/// What an answer can look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `{"columns":[...],"rows":[[...]],"row_count":n}`.
    Json,
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    /// Arrow's streaming format.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Json, Self::Csv, Self::Arrow, Self::Parquet];

    /// The name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// What `Content-Type` says.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// The encoder for rows of this schema. Fails if the format has no form for one of the types.
    pub fn encoder(self, schema: &SchemaRef) -> Result<Box<dyn Encoder>, EncodeError> {
        Ok(match self {
            Self::Json => Box::new(json::JsonEncoder::new(schema)),
            Self::Csv => Box::new(csv::CsvEncoder::new(schema)),
            Self::Arrow => Box::new(arrow::ArrowEncoder::new(schema)?),
            Self::Parquet => Box::new(parquet::ParquetEncoder::new(schema)?),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("format is {text:?}; it must be json, csv, arrow or parquet"))
    }
}

/// Writes the rows of one answer. What it has written is taken with [`take`](Self::take) as often as wanted.
pub trait Encoder: Send {
    /// Adds the rows of a batch.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError>;

    /// Ends a complete answer.
    fn finish(&mut self) -> Result<(), EncodeError>;

    /// Ends an answer that failed on the way by saying so, if the format has words for it; otherwise returns false, and
    /// the bytes must be cut off so that the reader notices.
    fn fail(&mut self, failure: &Failure<'_>) -> bool;

    /// The bytes written since the last call.
    fn take(&mut self) -> Vec<u8>;
}

/// Why an answer ends early, for its reader.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// The HTTP status that the answer would have had if the failure had come first.
    pub status: u16,
    /// ThingsBoard's error number.
    pub error_code: u16,
    /// What is wrong and what to do.
    pub message: &'a str,
}

/// A batch that a format has no form for.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written as {format}: {source}; choose another format or cast the column")]
pub struct EncodeError {
    format: Format,
    #[source]
    source: ArrowError,
}

impl EncodeError {
    fn new(format: Format, source: impl Into<ArrowError>) -> Self {
        Self { format, source: source.into() }
    }
}
