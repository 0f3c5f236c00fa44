//! Bounds of encoding answers.

/// Bytes of the row group of a Parquet answer in memory; at this size it is written.
pub const ROW_GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Rows of a row group of a Parquet answer.
pub const ROW_GROUP_ROWS_MAX: usize = 256 * 1024;
/// The largest integer without a gap below it in a double. JSON readers that know doubles only (JavaScript) would change
/// larger ones silently, so these are written as strings.
pub const JSON_INTEGER_MAX: u64 = 1 << 53;

const _: () = assert!(ROW_GROUP_BYTES_MAX >= 1024 * 1024, "row groups are worth their header");
