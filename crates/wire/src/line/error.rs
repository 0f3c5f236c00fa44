//! Lines that are not understood.

/// A malformed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct LineError {
    /// Offset in the line, from 0, at most its length.
    pub at: usize,
    /// The fault.
    pub reason: &'static str,
}

/// A malformed line of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLine<'a> {
    /// The line as it was sent, without its line break.
    pub bytes: &'a [u8],
    /// Offset of the line in the body.
    pub at: usize,
    /// The fault; its offset counts from the beginning of the line.
    pub error: LineError,
}
