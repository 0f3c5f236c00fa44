//! Limits of the line protocol.

/// Bytes within which a quoted text must end, counted from the beginning of its line. Otherwise the line ends at its first line
/// break, so one missing quote does not swallow a file.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
