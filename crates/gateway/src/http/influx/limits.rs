//! Limits of InfluxDB's interface.

/// Most bytes of the body of a write, before and after it is unpacked: the default of InfluxDB 1.8 (`max-body-size`).
pub(in crate::http) const WRITE_BYTES_MAX: usize = 25_000_000;
/// Bodies above this many bytes are read on a blocking thread: the event loop waits at most some tenths of a millisecond.
pub(in crate::http) const INLINE_BYTES_MAX: usize = 256 * 1024;
/// Refused lines that an answer names.
pub(super) const FAULTS_NAMED_MAX: usize = 10;
/// Bytes of a refused line that an answer repeats.
pub(super) const FAULT_LINE_BYTES_MAX: usize = 256;
/// Times that a request is read anew because a series of it was deleted meanwhile.
pub(in crate::http) const SERIES_GONE_MAX: usize = 3;
