//! Limits of InfluxDB's interface.

/// Most bytes of the body of a write, before and after it is unpacked: the default of InfluxDB 1.8 (`max-body-size`).
pub(in crate::http) const WRITE_BYTES_MAX: usize = 25_000_000;
/// Refused lines that an answer names.
pub(super) const FAULTS_NAMED_MAX: usize = 10;
/// Bytes of a refused line that an answer repeats.
pub(super) const FAULT_LINE_BYTES_MAX: usize = 256;
