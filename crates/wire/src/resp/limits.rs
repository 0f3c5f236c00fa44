//! Limits of RESP, with the reason for each value.

/// Longest line: a header, a simple string or an error. Redis writes lines of some hundred bytes and reads lines up to 64 KiB
/// (`PROTO_INLINE_MAX_SIZE`).
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest bulk string: Redis's default `proto-max-bulk-len`.
pub const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most elements of one aggregate: the limit of Redis for a request (`1024*1024` in a multi-bulk).
pub const ELEMENTS_MAX: usize = 16 * 1024 * 1024;
/// Deepest nesting of aggregates in a reply. `COMMAND DOCS` reaches 9, `XINFO STREAM FULL` 8.
pub const DEPTH_MAX: usize = 32;
