//! One end of each series: its newest or its oldest rows.
//!
//! A short slice of time at that end of the table has rows of every series that reports as the others do. A series that has none
//! there, or none with all fields, is looked for in a longer slice, and then in whatever is left. If most have none, all is read
//! at once, so a table of silent devices is not read much more often than once.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use model::{TimeRange, Timestamp};
use parking_lot::Mutex;
use store::{BatchReader, Order, SeriesSet, StoreError};

use super::plan::{Output, Plan, Source, cut};
use super::reader::{Reader, batch};

/// Rows that the first slice would have of each series, if all had as many and at equal distances.
const FIRST_SLICE_ROWS: u64 = 3;
/// How much longer each slice is than the one before.
const SLICE_GROWTH: u64 = 16;
/// Series that are worth a task of their own.
const TASK_SERIES: u64 = 32 * 1024;

/// What the readers of a read share.
pub(super) struct Ends {
    plan: Plan,
    sources: Vec<Source>,
    order: Order,
    first_slice_us: u64,
    schema: SchemaRef,
    batch_rows: usize,
    /// Series that no reader has begun with.
    tasks: Mutex<VecDeque<SeriesSet>>,
}

impl Ends {
    /// Of a plan for these series. `distance_us` is how far rows of a series are from each other in the mean.
    pub(super) fn new(
        plan: Plan,
        sources: Vec<Source>,
        order: Order,
        series: &SeriesSet,
        distance_us: u64,
        schema: SchemaRef,
        batch_rows: usize,
    ) -> Self {
        let first_slice_us = distance_us.saturating_mul(FIRST_SLICE_ROWS).max(1);
        Self { plan, sources, order, first_slice_us, schema, batch_rows, tasks: Mutex::new(tasks(series)) }
    }

    /// One reader, or as many as there is work for.
    pub(super) fn readers(self, readers_max: usize) -> Vec<Box<dyn BatchReader>> {
        let count = self.tasks.lock().len().min(readers_max.max(1));
        let ends = Arc::new(self);
        let reader = |_| Box::new(EndReader { ends: ends.clone(), search: None }) as Box<dyn BatchReader>;
        (0..count).map(reader).collect()
    }
}

fn tasks(series: &SeriesSet) -> VecDeque<SeriesSet> {
    let (Some(first), Some(last)) = (series.min(), series.max()) else { return VecDeque::new() };
    let within = |(first, last): (u32, u32)| {
        let mut task = SeriesSet::new();
        task.insert_range(first..=last);
        task & series
    };
    cut(Some(series), (first, last), series.len().div_ceil(TASK_SERIES)).into_iter().map(within).collect()
}

/// Microseconds.
pub(super) fn length_us(range: TimeRange) -> u64 {
    if range.is_empty() { 0 } else { range.end.micros().abs_diff(range.start.micros()) }
}

/// Looks for the ends of one task's series after the other's.
struct EndReader {
    ends: Arc<Ends>,
    search: Option<Search>,
}

impl BatchReader for EndReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        loop {
            let Some(search) = &mut self.search else {
                let Some(series) = self.ends.tasks.lock().pop_front() else { return Ok(None) };
                self.search = Some(Search::new(&self.ends, series));
                continue;
            };
            if let Some((arrays, rows)) = search.reader.next(self.ends.batch_rows)? {
                search.strike_out(&self.ends.plan, &arrays);
                return Ok(Some(batch(&self.ends.schema, arrays, rows)));
            }
            if !search.go_on(&self.ends) {
                self.search = None;
            }
        }
    }
}

/// A walk from one end of time towards the other.
struct Search {
    /// Series without a row that has all fields so far.
    missing: SeriesSet,
    /// How many they were when the slice at hand was begun.
    missing_before: u64,
    /// What has not been read, without the slice at hand.
    rest: TimeRange,
    slice_us: u64,
    reader: Reader,
}

impl Search {
    fn new(ends: &Ends, series: SeriesSet) -> Self {
        let (slice, rest) = divided(ends.plan.range, ends.first_slice_us, ends.order);
        let reader = reader(ends, slice, &series);
        let missing_before = series.len();
        Self { missing: series, missing_before, rest, slice_us: ends.first_slice_us, reader }
    }

    /// Leaves out series of which the rows just read have one with all fields.
    fn strike_out(&mut self, plan: &Plan, arrays: &[ArrayRef]) {
        let is_field = |output: &Output| matches!(output, Output::Field(_));
        let fields = plan.outputs.iter().zip(arrays).filter(|(output, _)| is_field(output));
        let nulls: Vec<_> = fields.filter_map(|(_, array)| array.nulls()).collect();
        for (series, mut rows) in self.reader.series() {
            if rows.any(|row| nulls.iter().all(|nulls| nulls.is_valid(row))) {
                self.missing.remove(series);
            }
        }
    }

    /// Begins the next slice; `false` if there is nothing left to look for, or nowhere.
    fn go_on(&mut self, ends: &Ends) -> bool {
        if self.missing.is_empty() || self.rest.is_empty() {
            return false;
        }
        let found_most = self.missing.len() < self.missing_before / 2;
        self.slice_us = if found_most { self.slice_us.saturating_mul(SLICE_GROWTH) } else { u64::MAX };
        self.missing_before = self.missing.len();
        let (slice, rest) = divided(self.rest, self.slice_us, ends.order);
        self.rest = rest;
        self.reader = reader(ends, slice, &self.missing);
        true
    }
}

/// The slice at the end where a walk begins, and what is behind it. What would be hardly longer than the slice belongs to it.
fn divided(range: TimeRange, slice_us: u64, order: Order) -> (TimeRange, TimeRange) {
    let (start, end) = (range.start.micros(), range.end.micros());
    let cut = match order {
        _ if length_us(range) / 2 <= slice_us => None,
        Order::Ascending => start.checked_add_unsigned(slice_us),
        Order::Descending => end.checked_sub_unsigned(slice_us),
    };
    let cut =
        cut.map_or(if order == Order::Ascending { range.end } else { range.start }, Timestamp::from_micros);
    let (before, after) = (TimeRange::new(range.start, cut), TimeRange::new(cut, range.end));
    match order {
        Order::Ascending => (before, after),
        Order::Descending => (after, before),
    }
}

fn reader(ends: &Ends, range: TimeRange, series: &SeriesSet) -> Reader {
    let plan = Plan { range, series: Some(Arc::new(series.clone())), ..ends.plan.clone() };
    let tasks = plan.tasks(ends.sources.clone(), 1, Vec::new);
    Reader::new(Arc::new(plan), Arc::new(Mutex::new(tasks)))
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
        let found = tasks(&series);
        assert_eq!(found.len(), 2);
        for task in found {
            assert!(task.is_subset(&series) && task.len() <= TASK_SERIES);
            series -= task;
        }
        assert!(series.is_empty() && tasks(&series).is_empty());
    }
}
