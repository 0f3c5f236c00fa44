//! Limits of InfluxDB's interface.

/// Most bytes of the body of a write, before and after it is unpacked: the default of InfluxDB 1.8 (`max-body-size`).
pub(crate) const WRITE_BYTES_MAX: usize = 25_000_000;
/// Refused lines that an answer names.
pub(super) const FAULTS_NAMED_MAX: usize = 10;
/// Bytes of a refused line that an answer repeats.
pub(super) const FAULT_LINE_BYTES_MAX: usize = 256;
/// Most bytes of the form of a query, before and after it is unpacked: a query of the longest text with each byte escaped.
pub(crate) const QUERY_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows of a chunk when a request names no number, as in InfluxDB.
pub(super) const CHUNK_ROWS_DEFAULT: usize = 10_000;
/// Bytes of an answer that are sent at once, and most bytes of the rows of a chunk.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Rows of `SELECT ... INTO` that are written at once.
pub(super) const INTO_ROWS: usize = 10_000;
/// Most points that a statement holds in memory, or gives without a function. The bound on memory of a query is often met first.
pub(super) const QUERY_POINTS_MAX: u64 = 50_000_000;
/// Most buckets of `GROUP BY time(...)` in the range of a statement.
pub(super) const QUERY_BUCKETS_MAX: u64 = 1_000_000;
/// Most series or groups that a statement lists.
pub(super) const QUERY_SERIES_MAX: usize = 1_000_000;

const _: () = assert!(timeseries::influxql::limits::QUERY_BYTES_MAX * 3 <= QUERY_BODY_BYTES_MAX);
