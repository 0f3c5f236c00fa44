//! Limits of HTTP/2, with the reason for each value.

/// Length of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 9;
/// Largest payload of a frame without another agreement, and the smallest limit a peer may set.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Largest flow-control window, and largest number of a stream.
pub const WINDOW_MAX: u32 = 0x7fff_ffff;
/// Window of connection and streams before anybody says another.
pub const WINDOW_DEFAULT: u32 = 65_535;
