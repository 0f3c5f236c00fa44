//! HTTP/2 as a client sees it that knows beforehand what the server speaks (RFC 9113, RFC 7541): frames, and as much of header
//! compression as a client needs that has set the size of its dynamic table to 0.
//!
//! Such a client gets header fields out of the static table and as literals only, so it can look for the one it wants and skip
//! all others unread. [`hpack::status`] does that. Requests are written with the static table and literals.

mod frame;
pub mod hpack;
pub mod limits;
pub mod write;

pub use frame::{DecodeError, Frame, Kind, Settings, flag, frame, reason};

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Numbers of settings (RFC 9113, 6.5.2).
pub mod setting {
    /// Largest size of the dynamic table that the peer may use, bytes.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the peer may push.
    pub const ENABLE_PUSH: u16 = 2;
    /// Most streams that the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Bytes the peer may send on a new stream before it is told more.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Largest payload of a frame that the peer may send.
    pub const MAX_FRAME_SIZE: u16 = 5;
}
