//! Frames of WebSocket (RFC 6455).
//!
//! The reader is for a server that carries a stream of bytes in binary messages, such as MQTT. The boundaries of messages and frames
//! mean nothing to the stream, so the reader gives the bytes as they come. [`client`] has the frames as a client sees them.

pub mod client;
mod reader;
mod write;

pub use reader::{Fault, FrameReader, ReadBytes};
pub use write::{write_binary, write_close};

/// Codes of a close frame (section 7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// A message of a kind that is not accepted, such as text.
    pub const UNSUPPORTED: Self = Self(1003);
    /// A message that is too long.
    pub const TOO_LONG: Self = Self(1009);
}

/// Longest payload of a control frame (section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
/// Bytes of answers that may wait for a client. Above it pings get no pong: one pong may answer several pings (section 5.5.3).
pub const ANSWERS_BYTES_MAX: usize = 1024;
