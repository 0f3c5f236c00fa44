//! Bytes that are not a frame of the protocol.

/// The server has sent something that is not a frame of version 4 of the native protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum ProtocolError {
    /// The first byte of a frame.
    #[error("the first byte is {0:#04x}, not that of an answer of the native protocol (version 3 to 5)")]
    NoFrame(u8),
    /// A frame that is longer than any that this program asks for.
    #[error("a frame has {bytes} bytes; this program takes up to {max}")]
    TooLong {
        /// The length in the header.
        bytes: u32,
        max: u32,
    },
    /// A frame ends before one of its fields.
    #[error("a frame ends at byte {at}, before the end of {field}")]
    Short {
        /// The name of the field.
        field: &'static str,
        /// The offset in the body of the frame.
        at: usize,
    },
    /// A field has a value that the protocol does not have, or that this program does not ask for.
    #[error("{field} is {value}, which is not an answer to what this program has sent")]
    Unexpected {
        /// The name of the field.
        field: &'static str,
        value: i64,
    },
    /// A text that is not UTF-8.
    #[error("{field} at byte {at} is not UTF-8")]
    NotText {
        /// The name of the field.
        field: &'static str,
        /// The offset in the body of the frame.
        at: usize,
    },
}
