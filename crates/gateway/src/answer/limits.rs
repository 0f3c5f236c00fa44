//! Bounds of the encoders.

/// Bytes of the unfinished row group of a Parquet answer. At this size it is written.
pub const ROW_GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Rows of a row group of a Parquet answer.
pub const ROW_GROUP_ROWS_MAX: usize = 256 * 1024;
/// The largest integer up to which a double represents all integers. JSON readers that have only doubles (JavaScript) would
/// change larger ones silently, so the encoder writes them as strings.
pub const JSON_INTEGER_MAX: u64 = 1 << 53;

const _: () = assert!(ROW_GROUP_BYTES_MAX >= 1024 * 1024, "row groups are worth their header");
