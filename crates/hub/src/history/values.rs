//! Reads a history value by value.

use std::ops::ControlFlow;

use model::{SeriesId, Timestamp, ValueRef, limits};
use store::{Store, ValueColumn};

use super::block::{numbers, value_of};
use super::reduce::{HeldTextBytes, Reduction};
use super::request::{Aggregation, HistoryError, HistoryRequest, check, check_values, scan_of};
use super::sink::{History, TimedValue, ValueSink};

/// Reads the history of one series.
pub fn read(store: &dyn Store, series: SeriesId, request: &HistoryRequest) -> Result<History, HistoryError> {
    let mut collected = Collected(vec![Vec::new(); request.keys.len()]);
    read_into(store, series, request, &mut collected)?;
    Ok(request.keys.iter().cloned().zip(collected.0).collect())
}

/// Reads the history of one series value by value, so the history is never in memory as a whole. After an error the caller
/// must discard what `sink` received.
pub fn read_into(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl ValueSink,
) -> Result<(), HistoryError> {
    match request.aggregation {
        _ if request.range.is_empty() => Ok(()),
        Aggregation::None => read_plain(store, series, request, sink),
        _ => {
            let reduction = Reduction::read(store, &[series], request, &HeldTextBytes::default())?;
            reduction.give(request.order, sink);
            Ok(())
        }
    }
}

/// Collects the values of each key.
pub(super) struct Collected(pub(super) Vec<Vec<TimedValue>>);

impl ValueSink for Collected {
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()> {
        self.0[key].push((ts, value.to_owned()));
        ControlFlow::Continue(())
    }
}

fn read_plain(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl ValueSink,
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
            // The limit is exceeded by at most one block.
            if total > limits::READ_ROWS_MAX as u64 {
                return ControlFlow::Break(());
            }
        }
        if left.iter().all(|left| *left == 0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    check_values(total)
}

/// Passes at most `limit` values of one key in a block to the sink; returns their number.
fn give(
    sink: &mut impl ValueSink,
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
