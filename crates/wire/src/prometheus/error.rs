//! Requests that are not understood.

/// A malformed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrometheusError {
    /// The body is not a block of snappy.
    #[error("the body is not a snappy block: {0}")]
    Snappy(String),
    /// The unpacked request is larger than the limit. Nothing was unpacked.
    #[error("the unpacked request has {bytes} bytes, the limit is {limit}; send fewer samples in a request")]
    TooLong {
        /// The length that the block names.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes are not protocol buffers of this message.
    #[error("the request is not a WriteRequest: {reason} at byte {at}")]
    Message {
        /// Offset in the unpacked request.
        at: usize,
        /// The fault.
        reason: &'static str,
    },
}
