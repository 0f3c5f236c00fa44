//! Reading back: rows of a device, plain or reduced to one value per interval.
//!
//! Intervals are counted from the start of the range; a reduced value carries the time of the middle of its
//! interval, and an interval without values is left out, as ThingsBoard does
//! (`AggregatePartitionsFunction`, `AbstractChunkedAggregationTimeseriesDao`).

use std::cmp::Ordering;
use std::ops::ControlFlow;

use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef, limits};
use store::{Order, Scan, Store, StoreError};

/// How the values of one interval become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Not at all: every value is returned, up to the limit.
    #[default]
    None,
    /// The smallest number, or the first string in the order of code points.
    Min,
    /// The largest number, or the last string.
    Max,
    /// The mean of the numbers.
    Avg,
    /// The sum of the numbers; an integer as long as it fits and all are integers.
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

/// A value and its time.
pub type Sample = (Timestamp, Value);

/// Values per key, in the order of [`HistoryRequest::keys`].
pub type History = Vec<(String, Vec<Sample>)>;

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
    let samples = match request.aggregation {
        _ if request.range.is_empty() => vec![Vec::new(); request.keys.len()],
        Aggregation::None => read_plain(store, series, request)?,
        _ => read_reduced(store, series, request)?,
    };
    Ok(request.keys.iter().cloned().zip(samples).collect())
}

fn check(what: &'static str, actual: u64, remedy: &'static str) -> Result<(), HistoryError> {
    let limit = limits::READ_ROWS_MAX as u64;
    if actual > limit { Err(HistoryError::OverLimit { what, actual, limit, remedy }) } else { Ok(()) }
}

fn read_plain(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
) -> Result<Vec<Vec<Sample>>, HistoryError> {
    check("the limit of values per key", request.limit as u64, "ask for less and page through the range")?;
    let mut samples = vec![Vec::new(); request.keys.len()];
    let (mut full, mut total) = (0, 0_u64);
    let scan = scan_of(series, request);
    store.scan(&scan, &mut |row| {
        for (key_samples, value) in samples.iter_mut().zip(row.values) {
            let Some(value) = value.filter(|_| key_samples.len() < request.limit) else { continue };
            key_samples.push((row.ts, value.to_owned()));
            full += usize::from(key_samples.len() == request.limit);
            total += 1;
        }
        // One more than may be held is enough to know.
        if full == samples_wanted(request) || total > limits::READ_ROWS_MAX as u64 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    check("the number of values over all keys", total, "ask for fewer keys or a smaller limit")?;
    Ok(samples)
}

fn samples_wanted(request: &HistoryRequest) -> usize {
    if request.limit == 0 { 0 } else { request.keys.len() }
}

fn read_reduced(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
) -> Result<Vec<Vec<Sample>>, HistoryError> {
    let TimeRange { start, end } = request.range;
    let span_us = end.micros().saturating_sub(start.micros());
    let interval_us = if request.interval_us <= 0 { span_us } else { request.interval_us.min(span_us) };
    let per_key = (span_us as u64).div_ceil(interval_us as u64);
    let intervals = per_key.saturating_mul(request.keys.len().max(1) as u64);
    check(
        "the number of intervals over all keys",
        intervals,
        "ask for a longer interval or a shorter range",
    )?;
    let mut open: Vec<Option<(i64, Accumulator)>> = vec![None; request.keys.len()];
    let mut samples = vec![Vec::new(); request.keys.len()];
    let close = |samples: &mut Vec<Sample>, (index, accumulator): (i64, Accumulator)| {
        let interval_start = start.micros() + index * interval_us;
        let interval_end = interval_start.saturating_add(interval_us).min(end.micros());
        let middle = interval_start + (interval_end - interval_start) / 2;
        let value = accumulator.result(request.aggregation);
        samples.extend(value.map(|value| (Timestamp::from_micros(middle), value)));
    };
    store.scan(&scan_of(series, request), &mut |row| {
        let index = row.ts.micros().saturating_sub(start.micros()) / interval_us;
        for (slot, (key_samples, value)) in open.iter_mut().zip(samples.iter_mut().zip(row.values)) {
            let Some(value) = value else { continue };
            if let Some(done) = slot.take_if(|(open_index, _)| *open_index != index) {
                close(key_samples, done);
            }
            slot.get_or_insert_with(|| (index, Accumulator::default())).1.add(*value);
        }
        ControlFlow::Continue(())
    })?;
    for (slot, key_samples) in open.into_iter().zip(&mut samples) {
        slot.into_iter().for_each(|last| close(key_samples, last));
    }
    Ok(samples)
}

fn scan_of(series: SeriesId, request: &HistoryRequest) -> Scan {
    Scan {
        series,
        keys: request.keys.clone(),
        range: request.range,
        order: request.order,
        // Each key has its own limit, so only the visitor knows when to stop.
        limit: usize::MAX,
    }
}

/// What has been seen of one interval.
#[derive(Debug, Clone, Default)]
struct Accumulator {
    count: u64,
    numbers: u64,
    sum_f64: f64,
    sum_i64: Option<i64>,
    floats: bool,
    smallest: Option<Value>,
    largest: Option<Value>,
}

impl Accumulator {
    fn add(&mut self, value: ValueRef<'_>) {
        self.count += 1;
        match value {
            ValueRef::I64(number) => self.add_number(number as f64, Some(number)),
            ValueRef::F64(number) => self.add_number(number, None),
            ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Json(_) => {}
        }
        if is_before(value, self.smallest.as_ref()) {
            self.smallest = Some(value.to_owned());
        }
        if is_before_reversed(value, self.largest.as_ref()) {
            self.largest = Some(value.to_owned());
        }
    }

    fn add_number(&mut self, number: f64, integer: Option<i64>) {
        self.sum_i64 = match (self.numbers, self.sum_i64, integer) {
            (0, _, Some(integer)) => Some(integer),
            (_, Some(sum), Some(integer)) => sum.checked_add(integer),
            _ => None,
        };
        self.floats |= integer.is_none();
        self.numbers += 1;
        self.sum_f64 += number;
    }

    fn result(self, aggregation: Aggregation) -> Option<Value> {
        match aggregation {
            Aggregation::Count => Some(Value::I64(self.count as i64)),
            Aggregation::Min => self.smallest,
            Aggregation::Max => self.largest,
            Aggregation::Avg if self.numbers > 0 => Some(Value::F64(self.sum_f64 / self.numbers as f64)),
            Aggregation::Sum if self.numbers > 0 => {
                Some(self.sum_i64.filter(|_| !self.floats).map_or(Value::F64(self.sum_f64), Value::I64))
            }
            Aggregation::Avg | Aggregation::Sum | Aggregation::None => None,
        }
    }
}

fn is_before(value: ValueRef<'_>, present: Option<&Value>) -> bool {
    is_replaced(value, present, Ordering::Less)
}

fn is_before_reversed(value: ValueRef<'_>, present: Option<&Value>) -> bool {
    is_replaced(value, present, Ordering::Greater)
}

/// Numbers go before strings; other types have no order.
fn is_replaced(value: ValueRef<'_>, present: Option<&Value>, wanted: Ordering) -> bool {
    if !matches!(value, ValueRef::I64(_) | ValueRef::F64(_) | ValueRef::String(_)) {
        return false;
    }
    match (value, present.map(Value::as_ref)) {
        (_, None) => true,
        (ValueRef::String(one), Some(ValueRef::String(other))) => one.cmp(other) == wanted,
        (ValueRef::I64(one), Some(ValueRef::I64(other))) => one.cmp(&other) == wanted,
        (ValueRef::String(_), _) => false,
        (_, Some(ValueRef::String(_))) => true,
        (one, Some(other)) => number(one).partial_cmp(&number(other)) == Some(wanted),
    }
}

fn number(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::I64(number) => number as f64,
        ValueRef::F64(number) => number,
        ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Json(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests;
