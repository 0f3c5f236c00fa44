//! History requests and their bounds.

use model::{SeriesId, TimeRange, limits};
use store::{Order, Scan, StoreError};

/// The aggregate of the values of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// No aggregation: the answer has every value, up to the limit.
    #[default]
    None,
    /// The smallest number as it was reported, or the first string in the order of code points.
    Min,
    /// The largest number, or the last string.
    Max,
    /// The mean of the numbers, computed with f64.
    Avg,
    /// The sum of the numbers: an integer as long as it and all numbers fit into 64 bits, otherwise computed with f64.
    Sum,
    /// The number of values of any type.
    Count,
}

/// A request for the history of series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRequest {
    /// Keys to read.
    pub keys: Vec<String>,
    /// Half-open range of time.
    pub range: TimeRange,
    /// Aggregate of each interval.
    pub aggregation: Aggregation,
    /// Length of an interval in microseconds; the whole range when zero. Unused without aggregation.
    pub interval_us: i64,
    /// Most values per key. Unused with aggregation.
    pub limit: usize,
    /// Order by time.
    pub order: Order,
}

/// A request that cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The request needs more memory than the limit.
    #[error("{what} is {actual}, the limit is {limit}; {remedy}")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// Its value.
        actual: u64,
        /// The limit.
        limit: u64,
        /// The remedy for the caller.
        remedy: &'static str,
    },
    /// The store failed to read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refuses more values than one answer may hold in memory.
pub(super) fn check(what: &'static str, actual: u64, remedy: &'static str) -> Result<(), HistoryError> {
    let limit = limits::READ_ROWS_MAX as u64;
    if actual > limit { Err(HistoryError::OverLimit { what, actual, limit, remedy }) } else { Ok(()) }
}

/// Refuses an answer with more values than one answer may hold in memory. For readers that split the keys of one request.
pub fn check_values(values: u64) -> Result<(), HistoryError> {
    check("the number of values over all keys", values, "ask for fewer keys or a smaller limit")
}

/// The scan for a request, with at most `limit` rows. The visitor stops the scan, because each key has its own limit.
pub(super) fn scan_of(series: SeriesId, request: &HistoryRequest, limit: usize) -> Scan {
    Scan { series, keys: request.keys.clone(), range: request.range, order: request.order, limit }
}
