//! Aggregates one or several series: one value per key and interval.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};

use model::SeriesId;
use model::limits::READ_TEXT_BYTES_MAX;
use store::{Order, Scan, Store, ValueColumn};

use super::accumulator::Accumulator;
use super::align::give_as_rows;
use super::block::number_of;
use super::intervals::{Intervals, Run};
use super::request::{HistoryError, HistoryRequest, check, scan_of};
use super::sink::{History, RowSink, TimedValue, ValueSink};

/// Intervals per page.
const PAGE: usize = 64;

/// Aggregates of several series: for each key and interval the aggregate over all series.
#[derive(Debug)]
pub struct Reduction {
    intervals: Intervals,
    /// The aggregate of an interval without rows.
    empty: Accumulator,
    of_keys: Vec<Reduced>,
}

/// The bytes of text that the reductions of one request hold. The number of values bounds numbers, but not texts.
#[derive(Debug, Default)]
pub struct HeldTextBytes(AtomicI64);

impl HeldTextBytes {
    fn add(&self, bytes: i64) -> u64 {
        u64::try_from(self.0.fetch_add(bytes, Ordering::Relaxed) + bytes).unwrap_or(0)
    }
}

impl Reduction {
    /// Aggregates the values of the series. The request must have an aggregation. A series that is named twice counts twice.
    /// Reads files: call it on a thread that may block.
    pub fn read(
        store: &dyn Store,
        series: &[SeriesId],
        request: &HistoryRequest,
        text: &HeldTextBytes,
    ) -> Result<Self, HistoryError> {
        check_intervals(request, 1)?;
        let intervals = Intervals::new(request.range, &request.interval)?;
        let empty = Accumulator::new(request.aggregation);
        let mut reduction = Self { intervals, empty, of_keys: vec![Reduced::default(); request.keys.len()] };
        let mut runs = Vec::new();
        for series in series.iter().filter(|_| !request.range.is_empty()) {
            reduction.add(store, *series, request, text, &mut runs)?;
        }
        Ok(reduction)
    }

    /// Adds the rows of a series. It reads them in ascending order, the cheapest; [`timed_values`](Self::timed_values) applies the order
    /// of the request to the few results.
    fn add(
        &mut self,
        store: &dyn Store,
        series: SeriesId,
        request: &HistoryRequest,
        text: &HeldTextBytes,
        runs: &mut Vec<Run>,
    ) -> Result<(), HistoryError> {
        let mut held = 0;
        let scan = Scan { order: Order::Ascending, ..scan_of(series, request, usize::MAX) };
        store.scan_blocks(&scan, &mut |block| {
            held = text.add(self.add_block(block.times, block.columns, runs));
            if held > READ_TEXT_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if held > READ_TEXT_BYTES_MAX {
            return Err(HistoryError::OverLimit {
                what: "the text of the smallest or largest values in bytes",
                actual: held,
                limit: READ_TEXT_BYTES_MAX,
                remedy: "ask for fewer devices or keys, or a longer interval",
            });
        }
        Ok(())
    }

    /// Adds a block of rows; returns by how many bytes the held text grows.
    fn add_block(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], runs: &mut Vec<Run>) -> i64 {
        let Self { intervals, empty, of_keys } = self;
        intervals.cut(times, runs);
        let mut text = 0;
        for (of_key, columns) in of_keys.iter_mut().zip(columns) {
            for (index, rows) in &*runs {
                text += of_key.at(*index, intervals, empty).add_rows(columns, rows.clone());
            }
        }
        text
    }

    /// Adds the aggregates of other series for the same request.
    pub fn merge(&mut self, other: Self) {
        self.of_keys.iter_mut().zip(other.of_keys).for_each(|(one, other)| one.merge(other));
    }

    /// Passes the values of each key to the sink.
    pub fn give(self, order: Order, sink: &mut impl ValueSink) {
        for (key, timed_values) in self.timed_values(order).enumerate() {
            if give_timed_values(sink, key, &timed_values).is_break() {
                break;
            }
        }
    }

    /// Passes the values to the sink, the values of all keys in one interval as a row. `keys` are the keys of the request.
    pub fn give_rows(self, keys: &[String], order: Order, sink: &mut impl RowSink) {
        let history: History = keys.iter().cloned().zip(self.timed_values(order)).collect();
        give_as_rows(&history, order, sink);
    }

    fn timed_values(self, order: Order) -> impl Iterator<Item = Vec<TimedValue>> {
        let Self { intervals, of_keys, .. } = self;
        of_keys.into_iter().map(move |of_key| {
            let mut timed_values = of_key.timed_values(&intervals);
            if order == Order::Descending {
                timed_values.reverse();
            }
            timed_values
        })
    }
}

/// The largest number of values in `answers` answers to the request. Refuses more than one answer may hold in memory.
pub fn check_intervals(request: &HistoryRequest, answers: usize) -> Result<u64, HistoryError> {
    let intervals = Intervals::new(request.range, &request.interval)?.count().max(1);
    let lists = (request.keys.len().max(1) as u64).saturating_mul(answers as u64);
    let count = intervals.saturating_mul(lists);
    let (what, remedy) = match answers {
        0 | 1 => ("the number of intervals over all keys", "ask for a longer interval or a shorter range"),
        _ => (
            "the number of intervals over all keys and groups",
            "ask for a longer interval, a shorter range or fewer groups",
        ),
    };
    check(what, count, remedy)?;
    Ok(count)
}

/// Passes the values of a key to the sink: as numbers if all are f64, such as means.
fn give_timed_values(sink: &mut impl ValueSink, key: usize, timed_values: &[TimedValue]) -> ControlFlow<()> {
    let numbers: Option<Vec<f64>> = timed_values.iter().map(|(_, value)| number_of(value)).collect();
    if let Some(numbers) = numbers {
        let times: Vec<i64> = timed_values.iter().map(|(ts, _)| ts.micros()).collect();
        return sink.numbers(key, &times, &numbers);
    }
    timed_values.iter().try_for_each(|(ts, value)| sink.value(key, *ts, value.as_ref()))
}

/// The aggregates of one key: an accumulator for each interval, in pages. A page is allocated when one of its intervals has
/// a row.
#[derive(Debug, Clone, Default)]
struct Reduced {
    pages: Vec<Vec<Accumulator>>,
}

impl Reduced {
    fn at(&mut self, index: u64, intervals: &Intervals, empty: &Accumulator) -> &mut Accumulator {
        let index = usize::try_from(index).expect("BUG: intervals were counted");
        let (page, offset) = (index / PAGE, index % PAGE);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        let page = &mut self.pages[page];
        if page.is_empty() {
            let left = intervals.count() - (index - offset) as u64;
            page.resize(left.min(PAGE as u64) as usize, empty.clone());
        }
        &mut page[offset]
    }

    fn merge(&mut self, other: Self) {
        if other.pages.len() > self.pages.len() {
            self.pages.resize_with(other.pages.len(), Vec::new);
        }
        for (page, other) in self.pages.iter_mut().zip(other.pages) {
            if page.is_empty() {
                *page = other;
            } else {
                page.iter_mut().zip(other).for_each(|(one, other)| one.merge(other));
            }
        }
    }

    fn timed_values(self, intervals: &Intervals) -> Vec<TimedValue> {
        let pages = self.pages.into_iter().zip((0..).step_by(PAGE));
        let accumulators = pages.flat_map(|(page, first)| page.into_iter().zip(first..));
        accumulators
            .filter_map(|(accumulator, index)| Some((intervals.middle(index), accumulator.result()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use arrow_array::{Float64Array, Int64Array};
    use model::{TimeRange, Timestamp, Value};

    use super::super::block::numbers;
    use super::super::request::{Aggregation, Interval};
    use super::*;

    /// Eleven rows: numbers of two types, a gap of three rows, intervals without rows.
    const TIMES: [i64; 11] = [0, 1, 2, 9, 10, 11, 12, 35, 36, 39, 58];
    const INTEGERS: [Option<i64>; 11] =
        [None, None, Some(3), None, None, None, None, Some(2), None, Some(7), None];
    const FLOATS: [Option<f64>; 11] =
        [Some(0.5), Some(1.5), None, Some(0.1), None, None, None, None, Some(4.0), None, Some(0.2)];

    fn reduced(aggregation: Aggregation, intervals: &Intervals, blocks: &[Range<usize>]) -> Vec<TimedValue> {
        let of_keys = vec![Reduced::default()];
        let (intervals, empty) = (intervals.clone(), Accumulator::new(aggregation));
        let mut reduction = Reduction { intervals, empty, of_keys };
        let mut runs = Vec::new();
        for rows in blocks {
            let columns = [
                ValueColumn::I64(Int64Array::from(INTEGERS[rows.clone()].to_vec())),
                ValueColumn::F64(Float64Array::from(FLOATS[rows.clone()].to_vec())),
            ];
            // Numbers without a gap take another path.
            let columns = if numbers(&columns[1..]).is_some() { &columns[1..] } else { &columns };
            reduction.add_block(&TIMES[rows.clone()], &[columns.to_vec()], &mut runs);
        }
        reduction.timed_values(Order::Ascending).next().unwrap()
    }

    #[test]
    fn blocks_of_any_lengths_give_the_same() {
        let range = TimeRange::new(Timestamp::from_micros(0), Timestamp::from_micros(60));
        let every = |length_us| Intervals::new(range, &Interval::of_micros(length_us)).unwrap();
        for aggregation in
            [Aggregation::Min, Aggregation::Max, Aggregation::Avg, Aggregation::Sum, Aggregation::Count]
        {
            for length_us in [1, 3, 10, 30, 60] {
                let intervals = every(length_us);
                let one_by_one: Vec<_> = (0..TIMES.len()).map(|row| row..row + 1).collect();
                let expected = reduced(aggregation, &intervals, &one_by_one);
                for cuts in 0..1 << (TIMES.len() - 1) {
                    let ends =
                        (1..=TIMES.len()).filter(|end| *end == TIMES.len() || cuts >> (end - 1) & 1 == 1);
                    let mut begin = 0;
                    let blocks: Vec<_> = ends.map(|end| std::mem::replace(&mut begin, end)..end).collect();
                    assert_eq!(
                        reduced(aggregation, &intervals, &blocks),
                        expected,
                        "{aggregation:?} {length_us} {blocks:?}"
                    );
                }
            }
        }
        assert_eq!(every(0).count(), 1);
        let sums = reduced(Aggregation::Sum, &every(30), &[0..4, 4..11]);
        let of = |micros, sum| (Timestamp::from_micros(micros), Value::F64(sum));
        assert_eq!(sums, [of(15, 5.1), of(45, 13.2)]);
    }
}
