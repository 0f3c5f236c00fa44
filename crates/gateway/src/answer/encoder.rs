//! The interface of the encoders.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::format::Format;

/// Encodes the rows of one answer. [`take`](Self::take) returns the bytes so far, as often as wanted.
pub trait Encoder: Send {
    /// Adds the rows of a batch.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError>;

    /// Ends a complete answer.
    fn finish(&mut self) -> Result<(), EncodeError>;

    /// Ends a failed answer with the failure, if the format can express it. Otherwise it returns `false`, and the caller must
    /// cut off the bytes so the reader notices.
    fn fail(&mut self, failure: &Failure<'_>) -> bool;

    /// The bytes written since the last call.
    fn take(&mut self) -> Vec<u8>;
}

/// The failure that ends an answer early.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// The HTTP status of a request with this failure.
    pub status: u16,
    /// ThingsBoard's error number.
    pub error_code: u16,
    /// The fault and the remedy.
    pub message: &'a str,
}

/// A batch that a format cannot express.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written as {format}: {source}; choose another format or cast the column")]
pub struct EncodeError {
    format: Format,
    #[source]
    source: ArrowError,
}

impl EncodeError {
    pub(super) fn new(format: Format, source: impl Into<ArrowError>) -> Self {
        Self { format, source: source.into() }
    }
}
