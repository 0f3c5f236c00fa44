//! History requests and their bounds.

use std::num::NonZeroU64;

use model::{SeriesId, TimeRange, limits};
use store::{Order, Scan, StoreError};

use super::calendar::Calendar;

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

/// The intervals of an aggregation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Interval {
    /// The whole range is one interval.
    #[default]
    WholeRange,
    /// Each interval has this length in microseconds, counted from the start of the range.
    Length(NonZeroU64),
    /// Weeks, months or quarters. The first and the last one are cut at the ends of the range.
    Calendar(Calendar),
}

impl Interval {
    /// Intervals of a length in microseconds; the whole range if it is not positive.
    pub fn of_micros(length_us: i64) -> Self {
        let length_us = u64::try_from(length_us).ok().and_then(NonZeroU64::new);
        length_us.map_or(Self::WholeRange, Self::Length)
    }
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
    /// The intervals. Unused without aggregation.
    pub interval: Interval,
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
        limit: u64,
        /// The remedy for the caller.
        remedy: &'static str,
    },
    /// The calendar does not reach the range of time.
    #[error("the calendar does not reach the range of time; ask for a range within 200,000 years of today")]
    NoCalendar,
    /// The store failed to read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refuses more values than one answer may hold in memory.
pub(super) fn check(what: &'static str, actual: u64, remedy: &'static str) -> Result<(), HistoryError> {
    check_to(limits::READ_ROWS_MAX as u64, what, actual, remedy)
}

/// Refuses a quantity above a limit.
pub(super) fn check_to(
    limit: u64,
    what: &'static str,
    actual: u64,
    remedy: &'static str,
) -> Result<(), HistoryError> {
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
