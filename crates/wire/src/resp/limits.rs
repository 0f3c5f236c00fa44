//! Limits of RESP, with the reason for each value.

/// Longest line: a header, a simple string or an error. Redis itself writes at most some hundred bytes into one and reads
/// at most 64 KiB (`PROTO_INLINE_MAX_SIZE`).
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest bulk string: Redis's default `proto-max-bulk-len`.
pub const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most elements of one aggregate: what Redis accepts in a request (`1024*1024` in a multi-bulk) and far more than a reply
/// of it that fits into memory here.
pub const ELEMENTS_MAX: usize = 16 * 1024 * 1024;
/// Deepest nesting of aggregates in a reply. `COMMAND DOCS` reaches 9, `XINFO STREAM FULL` 8.
pub const DEPTH_MAX: usize = 32;
