//! Sorts rows from the order of arrival to (series, ts). The sort is stable.
//!
//! A flush has millions of rows of numbered series, a few per series, mostly in the order of time. So the sort distributes
//! rows twice: to buckets that fit into the cache, and then to their series. It compares times only within a series whose
//! times go back.

use std::ops::Range;

/// A row to sort. It should be small, because the sort copies it twice.
pub(crate) trait SortRow: Copy + Default {
    fn series(&self) -> u32;
    fn ts(&self) -> i64;
}

/// The desired number of rows of a bucket. They and their copy fit into the second-level cache.
const BUCKET_ROWS: usize = 4 * 1024;
/// The largest number of buckets. With more of them the alternating writes would take most of the time.
const BUCKETS_MAX: usize = 2 * 1024;

/// Sorts the rows of `chunks`, which are in the order of arrival.
pub(crate) fn sorted<T: SortRow, C: Iterator<Item = T>>(chunks: impl Fn() -> C) -> Vec<T> {
    let buckets = Buckets::count(&chunks);
    let mut rows = vec![T::default(); buckets.rows()];
    let mut next: Vec<usize> = buckets.ends[..buckets.ends.len() - 1].to_vec();
    for row in chunks() {
        let position = &mut next[buckets.of(row.series())];
        rows[*position] = row;
        *position += 1;
    }
    let mut sorter = BucketSorter::default();
    for index in 0..buckets.ends.len() - 1 {
        sorter.sort(&mut rows[buckets.ends[index]..buckets.ends[index + 1]], buckets.series(index));
    }
    rows
}

/// The buckets. Series whose numbers differ only in some low bits share a bucket.
struct Buckets {
    first_series: u32,
    shift: u32,
    /// The first row of each bucket, and the end of the last bucket.
    ends: Vec<usize>,
}

impl Buckets {
    fn count<T: SortRow, C: Iterator<Item = T>>(chunks: &impl Fn() -> C) -> Self {
        let (mut rows, mut first, mut last) = (0, u32::MAX, 0);
        for row in chunks() {
            rows += 1;
            first = first.min(row.series());
            last = last.max(row.series());
        }
        // 64 bits, so that all 32 may be shifted out.
        let span = u64::from(last.saturating_sub(first));
        let buckets = (rows / BUCKET_ROWS).clamp(1, BUCKETS_MAX);
        let mut shift = 0;
        while (span >> shift) as usize >= buckets {
            shift += 1;
        }
        let mut ends = vec![0; (span >> shift) as usize + 2];
        let mut buckets = Self { first_series: first, shift, ends: Vec::new() };
        for row in chunks() {
            ends[buckets.of(row.series()) + 1] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        buckets.ends = ends;
        buckets
    }

    #[inline]
    fn of(&self, series: u32) -> usize {
        (u64::from(series - self.first_series) >> self.shift) as usize
    }

    fn rows(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The series of a bucket.
    fn series(&self, index: usize) -> Range<u64> {
        let start = u64::from(self.first_series) + ((index as u64) << self.shift);
        start..start + (1 << self.shift)
    }
}

/// Sorts one bucket after the other in the same memory.
struct BucketSorter<T> {
    copy: Vec<T>,
    ends: Vec<u32>,
}

impl<T> Default for BucketSorter<T> {
    fn default() -> Self {
        Self { copy: Vec::new(), ends: Vec::new() }
    }
}

impl<T: SortRow> BucketSorter<T> {
    fn sort(&mut self, rows: &mut [T], series: Range<u64>) {
        let span = (series.end - series.start) as usize;
        if span > 4 * rows.len() + 64 {
            // Most series are absent, so a count per series would take longer.
            return rows.sort_by_key(|row| (row.series(), row.ts()));
        }
        if span > 1 {
            self.by_series(rows, series.start, span);
        }
        for run in rows.chunk_by_mut(|a, b| a.series() == b.series()) {
            if !run.is_sorted_by_key(SortRow::ts) {
                run.sort_by_key(SortRow::ts);
            }
        }
    }

    fn by_series(&mut self, rows: &mut [T], first: u64, span: usize) {
        let index = |row: &T| (u64::from(row.series()) - first) as usize;
        self.ends.clear();
        self.ends.resize(span + 1, 0);
        rows.iter().for_each(|row| self.ends[index(row) + 1] += 1);
        let mut sum = 0;
        for end in &mut self.ends {
            sum += *end;
            *end = sum;
        }
        self.copy.clear();
        self.copy.extend_from_slice(rows);
        for row in &self.copy {
            let position = &mut self.ends[index(row)];
            rows[*position as usize] = *row;
            *position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Row(u32, i64, usize);

    impl SortRow for Row {
        fn series(&self) -> u32 {
            self.0
        }

        fn ts(&self) -> i64 {
            self.1
        }
    }

    fn check(rows: &[(u32, i64)]) {
        let rows: Vec<Row> =
            rows.iter().enumerate().map(|(at, (series, ts))| Row(*series, *ts, at)).collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|row| (row.0, row.1, row.2));
        assert_eq!(sorted(|| rows.iter().copied()), expected);
    }

    proptest! {
        #[test]
        fn rows_sort_by_series_time_and_arrival(
            rows in prop::collection::vec((any::<u32>(), any::<i8>()), 0..300),
            shift in 0..32_u32,
        ) {
            check(&rows.iter().map(|(series, ts)| (series >> shift, (*ts).into())).collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_rows_go_to_many_buckets() {
        let mut random = 1_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 33
        };
        for series in [1, 1_000, 1 << 20, u32::MAX] {
            let row = |at: i64| (next() as u32 % series, at / 3 - next() as i64 % 2);
            check(&(0..50_000).map(row).collect::<Vec<_>>());
        }
    }
}
