//! Bounds of taps.

/// Bytes of rows that wait for the reader of a tap. Above it their series are read again from the store.
pub const TAP_PENDING_BYTES_MAX: usize = 32 * 1024 * 1024;
