//! Limits of HTTP/2, with the reason for each value.

/// Length of a frame header.
pub const FRAME_HEADER_BYTES: usize = 9;
/// Default of the largest payload, and the smallest limit that a peer may set.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Largest flow-control window, and largest stream id.
pub const WINDOW_MAX: u32 = 0x7fff_ffff;
/// Default window of connections and streams.
pub const WINDOW_DEFAULT: u32 = 65_535;
