//! Sorts and merges the rows of a flush: in goes what arrived, out comes each (series, ts) once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chunk::Chunk;

/// Microseconds of a partition.
pub(crate) const PARTITION_US: i64 = 86_400_000_000;

/// A row's place in the order of a part: series, ts, and its place in the chunks, which is the order of arrival.
/// One number, because sorting these is what a flush spends much of its time with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey(u128);

/// Most chunks of one table in a flush, and most rows of a chunk: a place has 16 bits for each.
pub(crate) const CHUNKS_MAX: usize = 1 << 16;

impl SortKey {
    fn new(series: u32, ts: i64, chunk: usize, row: u32) -> Self {
        let ts = (ts as u64) ^ (1 << 63); // so that negative times sort first
        Self(u128::from(series) << 96 | u128::from(ts) << 32 | (chunk as u128) << 16 | u128::from(row))
    }

    pub(crate) fn series(self) -> u32 {
        (self.0 >> 96) as u32
    }

    pub(crate) fn ts(self) -> i64 {
        ((self.0 >> 32) as u64 ^ (1 << 63)) as i64
    }

    pub(crate) fn chunk(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }

    pub(crate) fn row(self) -> u32 {
        self.0 as u32 & 0xffff
    }
}

/// The rows of one part-to-be, sorted.
pub(crate) struct Partition {
    /// Microseconds, half-open.
    pub(crate) range: (i64, i64),
    pub(crate) keys: Vec<SortKey>,
}

/// Which days share a part: each day has its own, unless there are more than `parts_max`.
pub(crate) fn partitions(chunks: &[Arc<Chunk>], parts_max: usize) -> Vec<(i64, i64)> {
    let mut days: BTreeMap<i64, usize> = BTreeMap::new();
    for chunk in chunks {
        // Neighbours are mostly of the same day; looking it up once for a run of them is enough.
        let mut run = (0, 0);
        for row in 0..chunk.len() as u32 {
            let day = chunk.ts(row).div_euclid(PARTITION_US);
            if run.1 > 0 && run.0 != day {
                *days.entry(run.0).or_default() += run.1;
                run.1 = 0;
            }
            run = (day, run.1 + 1);
        }
        if run.1 > 0 {
            *days.entry(run.0).or_default() += run.1;
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

/// The sorted rows of one range of days; rows without any field are left out.
pub(crate) fn sort_partition(chunks: &[Arc<Chunk>], range: (i64, i64)) -> Partition {
    assert!(chunks.len() <= CHUNKS_MAX, "BUG: a flush begins before a table has this many chunks");
    let mut keys = Vec::new();
    for (number, chunk) in chunks.iter().enumerate() {
        for row in 0..chunk.len() as u32 {
            let ts = chunk.ts(row);
            // The end of the last day saturates; i64::MAX itself belongs to it.
            let inside = range.0 <= ts && (ts < range.1 || range.1 == i64::MAX);
            if inside && !chunk.body(row).is_empty() {
                keys.push(SortKey::new(chunk.series(row), ts, number, row));
            }
        }
    }
    keys.sort_unstable();
    Partition { range, keys }
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
        let keys = sort_partition(&chunks, ranges[0]).keys;
        let found: Vec<_> = keys.iter().map(|key| (key.series(), key.ts(), key.chunk(), key.row())).collect();
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
        let total: usize = shared.iter().map(|range| sort_partition(&chunks, *range).keys.len()).sum();
        assert_eq!(total, 100);
    }
}
