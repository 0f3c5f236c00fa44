//! Bounds of the rows that callers send.

/// Series that are found by the bytes in which requests name them. Each takes about 50 bytes. When a share of the cache is full, it
/// is emptied; then the next requests find their series in the index of the store.
pub const SERIES_CACHED_MAX: usize = 4 * 1024 * 1024;
/// Refused items of one request that become dead letters. One more dead letter counts the others.
pub const DEAD_LETTERS_PER_REQUEST_MAX: usize = 100;
/// Bytes of a refused item that a dead letter keeps. A longer one is cut off.
pub const DEAD_LETTER_BYTES_MAX: usize = 16 * 1024;
