//! Encodes the answers of queries: JSON, CSV, an Arrow stream, a Parquet file.
//!
//! An [`Encoder`] takes one batch at a time and keeps only what the format demands (for Parquet one unfinished row group), so
//! an answer of any length needs bounded memory.

mod arrow;
mod cell_text;
mod csv;
mod encoder;
mod encoders;
mod format;
mod json;
pub mod limits;
mod parquet;
mod pieces;
mod plain;
#[cfg(test)]
mod tests;

pub use encoder::{EncodeError, Encoder, Failure};
pub use format::Format;
pub use pieces::{AnswerError, CutOff, Pieces, deleted_rows, pieces};
