//! HTTP/2 with prior knowledge for clients (RFC 9113, RFC 7541): frames, and the header compression of a client that has set the
//! size of its dynamic table to 0.
//!
//! Such a client gets header fields only as entries of the static table and as literals, so it can search for one field and skip
//! all others. [`hpack::status`] does that. Requests use the static table and literals.

mod frame;
pub mod hpack;
pub mod limits;
pub mod write;

pub use frame::{DecodeError, Frame, FrameKind, Settings, flag, frame, reason};

/// The connection preface of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Identifiers of settings (RFC 9113, 6.5.2).
pub mod setting {
    /// Largest size of the dynamic table that the peer may use, bytes.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the peer may push.
    pub const ENABLE_PUSH: u16 = 2;
    /// Most streams that the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Bytes that the peer may send on a new stream before a window update.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Largest payload of a frame that the peer may send.
    pub const MAX_FRAME_SIZE: u16 = 5;
}
