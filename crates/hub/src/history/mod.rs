//! Reading back: rows of a device, plain or reduced to one value per interval.
//!
//! Intervals are counted from the start of the range; a reduced value carries the time of the middle of its
//! interval, and an interval without values is left out, as ThingsBoard does
//! (`AggregatePartitionsFunction`, `AbstractChunkedAggregationTimeseriesDao`).

mod number;
mod reduce;
mod rows;

use std::ops::ControlFlow;

use arrow_array::Array;
use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef, limits};
use store::{Order, Scan, Store, StoreError, ValueColumn};

/// How the values of one interval become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Not at all: every value is returned, up to the limit.
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
    /// How many values of any type.
    Count,
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRequest {
    /// Keys, each answered by a list of its own.
    pub keys: Vec<String>,
    /// Half-open range of time.
    pub range: TimeRange,
    /// Reduction.
    pub aggregation: Aggregation,
    /// Length of an interval in microseconds; the whole range when zero. Unused without reduction.
    pub interval_us: i64,
    /// Most values per key. Unused with reduction.
    pub limit: usize,
    /// Direction.
    pub order: Order,
}

pub use reduce::{Reduction, TextHeld, check_intervals};
pub use rows::{RowSink, read_rows_into};

/// A value and its time.
pub type Sample = (Timestamp, Value);

/// Values per key, in the order of [`HistoryRequest::keys`].
pub type History = Vec<(String, Vec<Sample>)>;

/// Takes the values of an answer one by one: those of a key in their order, keys in any.
pub trait Sink {
    /// Takes a value of the key with this number in [`HistoryRequest::keys`]; no more are wanted after a `Break`.
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()>;

    /// Takes some numbers of a key, as [`value`](Self::value) takes one; times are microseconds.
    fn numbers(&mut self, key: usize, times: &[i64], numbers: &[f64]) -> ControlFlow<()> {
        let mut values = times.iter().zip(numbers);
        values
            .try_for_each(|(ts, number)| self.value(key, Timestamp::from_micros(*ts), ValueRef::F64(*number)))
    }
}

/// Why a request cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The request asks for more than may be held in memory.
    #[error("{what} is {actual}, the limit is {limit}; {remedy}")]
    OverLimit {
        /// What was counted.
        what: &'static str,
        /// What it counted to.
        actual: u64,
        /// The limit.
        limit: u64,
        /// What to change.
        remedy: &'static str,
    },
    /// The store could not read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the history of one series.
pub fn read(store: &dyn Store, series: SeriesId, request: &HistoryRequest) -> Result<History, HistoryError> {
    let mut collected = Collected(vec![Vec::new(); request.keys.len()]);
    read_into(store, series, request, &mut collected)?;
    Ok(request.keys.iter().cloned().zip(collected.0).collect())
}

/// Reads the history of one series value by value, so that only what `sink` makes of it is held. What it got before an
/// error is no answer.
pub fn read_into(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl Sink,
) -> Result<(), HistoryError> {
    match request.aggregation {
        _ if request.range.is_empty() => Ok(()),
        Aggregation::None => read_plain(store, series, request, sink),
        _ => reduce::read(store, series, request, sink),
    }
}

struct Collected(Vec<Vec<Sample>>);

impl Sink for Collected {
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()> {
        self.0[key].push((ts, value.to_owned()));
        ControlFlow::Continue(())
    }
}

fn check(what: &'static str, actual: u64, remedy: &'static str) -> Result<(), HistoryError> {
    let limit = limits::READ_ROWS_MAX as u64;
    if actual > limit { Err(HistoryError::OverLimit { what, actual, limit, remedy }) } else { Ok(()) }
}

/// Refuses an answer with more values than may be held at once; for readers who share the keys of one request.
pub fn check_values(values: u64) -> Result<(), HistoryError> {
    check("the number of values over all keys", values, "ask for fewer keys or a smaller limit")
}

fn read_plain(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl Sink,
) -> Result<(), HistoryError> {
    check("the limit of values per key", request.limit as u64, "ask for less and page through the range")?;
    if request.limit == 0 {
        return Ok(());
    }
    let mut left = vec![request.limit; request.keys.len()];
    let mut total = 0_u64;
    store.scan_blocks(&scan_of(series, request, request.limit), &mut |block| {
        for (key, (columns, left)) in block.columns.iter().zip(&mut left).enumerate() {
            let taken = give(sink, key, block.times, columns, *left)?;
            *left -= taken;
            total += taken as u64;
            // One block more than may be held is enough to know.
            if total > limits::READ_ROWS_MAX as u64 {
                return ControlFlow::Break(());
            }
        }
        if left.iter().all(|left| *left == 0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    check_values(total)
}

/// Gives the values of one key in a block to the sink, `limit` at most; returns how many there were.
fn give(
    sink: &mut impl Sink,
    key: usize,
    times: &[i64],
    columns: &[ValueColumn],
    limit: usize,
) -> ControlFlow<(), usize> {
    if let Some(numbers) = numbers(columns) {
        let count = numbers.len().min(limit);
        sink.numbers(key, &times[..count], &numbers[..count])?;
        return ControlFlow::Continue(count);
    }
    let values = times.iter().enumerate().filter_map(|(row, ts)| Some((ts, value_of(columns, row)?)));
    let mut count = 0;
    for (ts, value) in values.take(limit) {
        sink.value(key, Timestamp::from_micros(*ts), value)?;
        count += 1;
    }
    ControlFlow::Continue(count)
}

/// The values of a key in a block if there is one in each row and all are of type f64, as those of nearly all keys are.
pub fn numbers(columns: &[ValueColumn]) -> Option<&[f64]> {
    match columns {
        [ValueColumn::F64(array)] if array.nulls().is_none_or(|nulls| nulls.null_count() == 0) => {
            Some(array.values())
        }
        _ => None,
    }
}

/// The number, if it is an f64.
fn number_of(value: &Value) -> Option<f64> {
    if let Value::F64(number) = value { Some(*number) } else { None }
}

/// The value of a key in a row of a block.
fn value_of(columns: &[ValueColumn], row: usize) -> Option<ValueRef<'_>> {
    columns.iter().find_map(|column| column.get(row))
}

/// Each key has its own limit, so only the visitor knows when to stop; `limit` is how many rows that may take.
fn scan_of(series: SeriesId, request: &HistoryRequest, limit: usize) -> Scan {
    Scan { series, keys: request.keys.clone(), range: request.range, order: request.order, limit }
}

#[cfg(test)]
mod tests;
