//! Reads of the last row of each series: its newest or its oldest rows.
//!
//! A short slice of time at one end of the table has rows of every series that reports regularly. If a series has no value
//! of a field there, the search continues in the next slice, which has several times as many rows, and so on. The length of
//! a slice follows from an estimate of its rows by the extents of the sources, so that a single row in the far future does
//! not make the slice long.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use model::{TimeRange, Timestamp};
use parking_lot::Mutex;
use store::{BatchReader, Order, SeriesSet, StoreError};

use super::plan::{Output, ReadPlan, Source, cut};
use super::reader::{TaskReader, batch};

/// The number of rows of each series in the first slice, if all series report alike.
const FIRST_SLICE_ROWS: u64 = 2;
/// The largest number of rows of the first slice, for the case that most series do not report any more.
const FIRST_SLICE_ROWS_MAX: u64 = 64 * 1024;
/// The ratio of the rows of a slice to those of the slice before.
const SLICE_GROWTH: f64 = 4.0;
/// The number of series that are worth a task of their own.
const TASK_SERIES: u64 = 16 * 1024;

/// The state that the readers of a read share.
pub(super) struct LastRowRead {
    pub(super) plan: ReadPlan,
    pub(super) sources: Vec<Source>,
    pub(super) order: Order,
    pub(super) schema: SchemaRef,
    pub(super) batch_rows: usize,
}

impl LastRowRead {
    /// The readers for these series. `all` is the number of series of the table.
    pub(super) fn readers(
        self,
        series: &SeriesSet,
        all: u64,
        readers_max: usize,
    ) -> Vec<Box<dyn BatchReader>> {
        let tasks = tasks(series, readers_max);
        let count = tasks.len().min(readers_max.max(1));
        let (read, tasks) = (Arc::new(self), Arc::new(Mutex::new(tasks)));
        let reader = |_| {
            let (read, tasks) = (read.clone(), tasks.clone());
            Box::new(LastRowReader { read, all: all.max(1), tasks, search: None }) as Box<dyn BatchReader>
        };
        (0..count).map(reader).collect()
    }

    /// The length of a slice at the end of a range that has about this many rows.
    fn slice_us(&self, range: TimeRange, rows: f64) -> u64 {
        let mut slice_us = 1;
        while slice_us < length_us(range) && self.rows_within(divided(range, slice_us, self.order).0) < rows {
            slice_us = slice_us.saturating_mul(2);
        }
        slice_us
    }

    /// An estimate of the rows in a range, as if the rows of each source had equal distances.
    fn rows_within(&self, range: TimeRange) -> f64 {
        let rows = |source: &Source| {
            let (first, last) = source.extent.ts;
            let inside = (first.max(range.start.micros()), last.min(range.end.micros().saturating_sub(1)));
            if inside.1 < inside.0 {
                return 0.0;
            }
            let length = |(first, last): (i64, i64)| last.abs_diff(first) as f64 + 1.0;
            source.rows as f64 * length(inside) / length((first, last))
        };
        self.sources.iter().map(rows).sum()
    }
}

fn tasks(series: &SeriesSet, readers_max: usize) -> VecDeque<SeriesSet> {
    let (Some(first), Some(last)) = (series.min(), series.max()) else { return VecDeque::new() };
    let within = |(first, last): (u32, u32)| {
        let mut task = SeriesSet::new();
        task.insert_range(first..=last);
        task & series
    };
    // Each task visits all sources, so there are at most as many tasks as readers.
    let count = series.len().div_ceil(TASK_SERIES).min(readers_max as u64);
    cut(Some(series), (first, last), count).into_iter().map(within).collect()
}

/// The length in microseconds.
fn length_us(range: TimeRange) -> u64 {
    if range.is_empty() { 0 } else { range.end.micros().abs_diff(range.start.micros()) }
}

/// Searches the last rows of the series of one task after the other.
struct LastRowReader {
    read: Arc<LastRowRead>,
    /// The number of series of the table.
    all: u64,
    /// The sets of series that no reader has taken yet.
    tasks: Arc<Mutex<VecDeque<SeriesSet>>>,
    search: Option<Search>,
}

impl BatchReader for LastRowReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        loop {
            let Some(search) = &mut self.search else {
                let Some(series) = self.tasks.lock().pop_front() else { return Ok(None) };
                self.search = Some(Search::new(&self.read, &series, self.all));
                continue;
            };
            if let Some((arrays, rows)) = search.reader.next(self.read.batch_rows)? {
                search.remove_found(&arrays);
                return Ok(Some(batch(&self.read.schema, arrays, rows)));
            }
            if !search.next_slice(&self.read) {
                self.search = None;
            }
        }
    }
}

/// A search from one end of time towards the other.
struct Search {
    /// For each output that is a field: its index, and the series without a value so far. Without such outputs one entry
    /// without an index, for which every row counts.
    missing: Vec<(Option<usize>, SeriesSet)>,
    /// The range after the current slice.
    rest: TimeRange,
    /// About the number of rows of the table in the current slice.
    rows: f64,
    reader: TaskReader,
}

impl Search {
    /// Starts the search for some of the `all` series.
    fn new(read: &LastRowRead, series: &SeriesSet, all: u64) -> Self {
        let is_field = |output: &Output| matches!(output, Output::Field(_) | Output::Numbers { .. });
        let mut missing: Vec<_> = (0..read.plan.outputs.len())
            .filter(|output| is_field(&read.plan.outputs[*output]))
            .map(|output| (Some(output), series.clone()))
            .collect();
        if missing.is_empty() {
            missing.push((None, series.clone()));
        }
        let wanted = (FIRST_SLICE_ROWS * series.len()).min(FIRST_SLICE_ROWS_MAX);
        // Other series have rows in the slice as well.
        let rows = wanted as f64 * all as f64 / series.len().max(1) as f64;
        let slice_us = read.slice_us(read.plan.range, rows);
        let (slice, rest) = divided(read.plan.range, slice_us, read.order);
        Self { missing, rest, rows, reader: reader(read, slice, series.clone()) }
    }

    /// Removes the series that have values in the rows just read.
    fn remove_found(&mut self, arrays: &[ArrayRef]) {
        for (series, rows) in self.reader.series() {
            for (output, missing) in &mut self.missing {
                let nulls = output.and_then(|output| arrays[output].nulls());
                if nulls.is_none_or(|nulls| rows.clone().any(|row| nulls.is_valid(row))) {
                    missing.remove(series);
                }
            }
        }
    }

    /// Starts the next slice. `false` when no series is missing or no time is left.
    fn next_slice(&mut self, read: &LastRowRead) -> bool {
        let missing = self.missing.iter().fold(SeriesSet::new(), |all, (_, of_field)| all | of_field);
        if missing.is_empty() || self.rest.is_empty() {
            return false;
        }
        self.rows *= SLICE_GROWTH;
        let (slice, rest) = divided(self.rest, read.slice_us(self.rest, self.rows), read.order);
        self.rest = rest;
        self.reader = reader(read, slice, missing);
        true
    }
}

/// The slice at the end where a search starts, and the rest of the range. A rest that is hardly longer than the slice
/// belongs to the slice.
fn divided(range: TimeRange, slice_us: u64, order: Order) -> (TimeRange, TimeRange) {
    let (start, end) = (range.start, range.end);
    let cut = match order {
        _ if length_us(range) / 2 <= slice_us => None,
        Order::Ascending => start.micros().checked_add_unsigned(slice_us),
        Order::Descending => end.micros().checked_sub_unsigned(slice_us),
    };
    let cut = cut.map(Timestamp::from_micros);
    match order {
        Order::Ascending => {
            let cut = cut.unwrap_or(end);
            (TimeRange::new(start, cut), TimeRange::new(cut, end))
        }
        Order::Descending => {
            let cut = cut.unwrap_or(start);
            (TimeRange::new(cut, end), TimeRange::new(start, cut))
        }
    }
}

fn reader(read: &LastRowRead, range: TimeRange, series: SeriesSet) -> TaskReader {
    let plan = ReadPlan { range, series: Some(Arc::new(series)), ..read.plan.clone() };
    let tasks = plan.tasks(read.sources.clone(), 1, Vec::new);
    TaskReader::new(Arc::new(plan), Arc::new(Mutex::new(tasks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
    }

    #[test]
    fn slices_meet_and_the_last_one_has_all_that_is_left() {
        let (slice, rest) = divided(range(0, 100), 10, Order::Descending);
        assert_eq!((slice, rest), (range(90, 100), range(0, 90)));
        let (slice, rest) = divided(range(0, 100), 10, Order::Ascending);
        assert_eq!((slice, rest), (range(0, 10), range(10, 100)));
        for order in [Order::Ascending, Order::Descending] {
            for slice_us in [50, 100, u64::MAX] {
                let (slice, rest) = divided(range(0, 100), slice_us, order);
                assert!(slice == range(0, 100) && rest.is_empty(), "{order:?} {slice_us}");
            }
            let (slice, rest) = divided(TimeRange::ALL, 5, order);
            assert_eq!((length_us(slice), length_us(rest)), (5, u64::MAX - 5));
            assert!(divided(range(7, 7), 5, order).1.is_empty());
        }
    }

    #[test]
    fn tasks_share_the_series_without_a_rest() {
        let mut series: SeriesSet = (0..3 * TASK_SERIES as u32 / 2).map(|n| 3 * n).collect();
        assert_eq!(tasks(&series, 1), [series.clone()]);
        let found = tasks(&series, 8);
        assert_eq!(found.len(), 2);
        for task in found {
            assert!(task.is_subset(&series) && task.len() <= TASK_SERIES);
            series -= task;
        }
        assert!(series.is_empty() && tasks(&series, 8).is_empty());
    }
}
