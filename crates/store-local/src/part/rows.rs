//! Sorts the rows of a flush by partition, series, time and arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sort::{SortRow, sorted};
use crate::chunk::{Chunk, Extent, Numbers};
use crate::row::KeyId;
use crate::tombstone::{Hidden, hides_values, is_hidden};

/// The length of a partition in microseconds.
pub(crate) const PARTITION_US: i64 = 86_400_000_000;

/// The largest number of chunks of one table in a flush, and of rows of a chunk: a [`ChunkRow`] has 16 bits for each.
pub(crate) const CHUNKS_MAX: usize = 1 << 16;

/// A row of a chunk, by its sort key and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkRow {
    pub(crate) ts: i64,
    pub(crate) series: u32,
    chunk: u16,
    row: u16,
}

impl ChunkRow {
    pub(crate) fn chunk(self) -> usize {
        self.chunk.into()
    }

    pub(crate) fn row(self) -> u32 {
        self.row.into()
    }
}

/// A row that has one f64.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct NumberRow {
    pub(crate) series: u32,
    pub(crate) ts: i64,
    pub(crate) value: f64,
}

impl SortRow for ChunkRow {
    fn series(&self) -> u32 {
        self.series
    }

    fn ts(&self) -> i64 {
        self.ts
    }
}

impl SortRow for NumberRow {
    fn series(&self) -> u32 {
        self.series
    }

    fn ts(&self) -> i64 {
        self.ts
    }
}

/// The rows of one new part.
pub(crate) struct Partition {
    /// The sequences of all rows are between these two.
    pub(crate) sequence: (u64, u64),
    pub(crate) rows: Sorted,
}

/// Rows in the order of series, time and arrival.
pub(crate) enum Sorted {
    /// Rows of one f64 of the same key.
    Numbers(KeyId, Vec<NumberRow>),
    /// Other rows.
    ChunkRows(Vec<ChunkRow>),
}

impl Partition {
    pub(crate) fn is_empty(&self) -> bool {
        match &self.rows {
            Sorted::Numbers(_, rows) => rows.is_empty(),
            Sorted::ChunkRows(rows) => rows.is_empty(),
        }
    }
}

/// The ranges of days that share a part: one day each, unless this makes more than `parts_max` parts.
pub(crate) fn partitions(chunks: &[Arc<Chunk>], parts_max: usize) -> Vec<(i64, i64)> {
    let mut days: BTreeMap<i64, usize> = BTreeMap::new();
    for chunk in chunks {
        let day = |ts: &i64| ts.div_euclid(PARTITION_US);
        // Nearly always all rows belong to one day.
        let times = chunk.times();
        if let Some(Extent { ts: (first, last), .. }) = chunk.extent()
            && day(&first) == day(&last)
        {
            *days.entry(day(&first)).or_default() += times.len();
            continue;
        }
        for run in times.chunk_by(|a, b| day(a) == day(b)) {
            *days.entry(day(&run[0])).or_default() += run.len();
        }
    }
    let rows: usize = days.values().sum();
    let share = if days.len() <= parts_max { 0 } else { rows.div_ceil(parts_max.max(1)) };
    let mut ranges: Vec<(i64, i64, usize)> = Vec::new();
    for (day, rows) in days {
        let start = day.saturating_mul(PARTITION_US);
        let end = day.saturating_add(1).saturating_mul(PARTITION_US);
        match ranges.last_mut() {
            Some(last) if last.2 < share => *last = (last.0, end, last.2 + rows),
            _ => ranges.push((start, end, rows)),
        }
    }
    ranges.into_iter().map(|(start, end, _)| (start, end)).collect()
}

/// The sorted rows of one range of days, without the rows that have no fields and those that tombstones hide. `hidden` are
/// the tombstones by chunk. Values that they hide are left in.
pub(crate) fn sort_partition(chunks: &[Arc<Chunk>], hidden: &[Hidden], range: (i64, i64)) -> Partition {
    assert!(chunks.len() <= CHUNKS_MAX, "BUG: a flush begins before a table has this many chunks");
    // The end of the last day saturates; i64::MAX itself belongs to that day.
    let inside = move |ts: i64| range.0 <= ts && (ts < range.1 || range.1 == i64::MAX);
    let here = chunks.iter().filter(|chunk| chunk.times().iter().any(|ts| inside(*ts)));
    let sequence = here.map(|chunk| chunk.sequences());
    let sequence = sequence.fold((u64::MAX, 0), |(min, max), of| (min.min(of.0), max.max(of.1)));
    let is_left = |chunk: usize, series, ts| {
        inside(ts) && hidden.get(chunk).is_none_or(|of| !is_hidden(of, series, ts))
    };
    let numbers: Option<Vec<Numbers<'_>>> = chunks.iter().map(|chunk| chunk.numbers()).collect();
    // Numbers without their chunk do not tell which values are hidden.
    let numbers = numbers.filter(|_| !hidden.iter().any(hides_values));
    let numbers = numbers.filter(|numbers| numbers.windows(2).all(|pair| pair[0].key == pair[1].key));
    let rows = match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let of_chunk =
                |(chunk, numbers)| number_rows(numbers).filter(move |row| is_left(chunk, row.series, row.ts));
            let rows = || numbers.iter().enumerate().flat_map(of_chunk);
            Sorted::Numbers(numbers[0].key, sorted(rows))
        }
        _ => {
            let rows = || chunks.iter().enumerate().flat_map(|(number, chunk)| chunk_rows(number, chunk));
            Sorted::ChunkRows(sorted(|| rows().filter(|row| is_left(row.chunk(), row.series, row.ts))))
        }
    };
    Partition { sequence, rows }
}

fn number_rows<'a>(numbers: &Numbers<'a>) -> impl Iterator<Item = NumberRow> + use<'a> {
    let rows = numbers.series.iter().zip(numbers.ts).zip(numbers.values);
    rows.map(|((series, ts), value)| NumberRow { series: *series, ts: *ts, value: *value })
}

fn chunk_rows(number: usize, chunk: &Chunk) -> impl Iterator<Item = ChunkRow> {
    let rows = (0..chunk.len() as u32).filter(|row| chunk.has_fields(*row));
    rows.map(move |row| ChunkRow {
        ts: chunk.ts(row),
        series: chunk.series(row),
        chunk: number as u16,
        row: row as u16,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::NO_ROW;

    fn chunk(rows: &[(u32, i64)]) -> Arc<Chunk> {
        let mut chunk = Chunk::new(1);
        for (series, ts) in rows {
            crate::row::put_field(chunk.body_buffer(), 0, model::ValueRef::Bool(true));
            chunk.push(*series, *ts, 0, NO_ROW);
        }
        Arc::new(chunk)
    }

    #[test]
    fn rows_sort_by_series_then_time_then_arrival() {
        let chunks = [chunk(&[(2, 5), (1, -5), (1, 7)]), chunk(&[(1, 7), (1, i64::MIN), (2, i64::MAX)])];
        let ranges = partitions(&chunks, 1);
        let Sorted::ChunkRows(rows) = sort_partition(&chunks, &[], ranges[0]).rows else {
            panic!("rows that are not numbers");
        };
        let found: Vec<_> = rows.iter().map(|row| (row.series, row.ts, row.chunk, row.row)).collect();
        let expected = [
            (1, i64::MIN, 1, 1),
            (1, -5, 0, 1),
            (1, 7, 0, 2),
            (1, 7, 1, 0),
            (2, 5, 0, 0),
            (2, i64::MAX, 1, 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn days_have_parts_of_their_own_until_there_are_too_many() {
        let rows: Vec<_> = (0..100).map(|day| (1, day * PARTITION_US + 1)).collect();
        let chunks = [chunk(&rows)];
        assert_eq!(partitions(&chunks, 100).len(), 100);
        assert_eq!(partitions(&chunks, 100)[3], (3 * PARTITION_US, 4 * PARTITION_US));
        let shared = partitions(&chunks, 10);
        assert_eq!(shared.len(), 10);
        let rows = |range| match sort_partition(&chunks, &[], range).rows {
            Sorted::ChunkRows(rows) => rows.len(),
            Sorted::Numbers(..) => panic!("rows that are not numbers"),
        };
        let total: usize = shared.iter().map(|range| rows(*range)).sum();
        assert_eq!(total, 100);
    }

    #[test]
    fn numbers_are_sorted_with_their_values() {
        let chunk = |rows: &[(u32, i64, f64)], sequence| {
            let mut chunk = Chunk::new(1);
            for (at, (series, ts, value)) in rows.iter().enumerate() {
                let row = Numbers { key: 4, series: &[*series], ts: &[*ts], values: &[*value] };
                chunk.push_numbers(row, sequence + at as u64, |_, _| NO_ROW);
            }
            Arc::new(chunk)
        };
        let day = PARTITION_US;
        let chunks =
            [chunk(&[(2, 5, 0.0), (1, 7, 1.0)], 10), chunk(&[(1, 7, 2.0), (1, 6, 3.0), (1, day, 4.0)], 20)];
        let found = sort_partition(&chunks, &[], (0, day));
        let Sorted::Numbers(4, rows) = found.rows else { panic!("numbers of key 4") };
        let rows: Vec<_> = rows.iter().map(|row| (row.series, row.ts, row.value)).collect();
        assert_eq!(rows, [(1, 6, 3.0), (1, 7, 1.0), (1, 7, 2.0), (2, 5, 0.0)]);
        assert_eq!(found.sequence, (10, 22));
        assert_eq!(sort_partition(&chunks, &[], (day, 2 * day)).sequence, (20, 22));
    }
}
