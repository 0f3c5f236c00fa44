//! Rows in memory: one table's rows in the order of arrival, with a way from each row to the series' one before.
//!
//! A row is kept as the bytes the log has (docs/adr/0002-memtable-rows-as-bytes.md). The open chunk is written under
//! the store's lock; frozen it is shared with readers and the flush, and gets the order of a part when first asked.

mod sorted;

use std::sync::{Arc, OnceLock};

use model::ValueRef;
use model::limits::{CHUNK_BODY_BYTES_MAX, LOG_PENDING_BYTES_MAX};

use crate::row::{self, KeyId};
pub(crate) use sorted::SortedRows;

/// No row before.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// Rows of one table.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Distinguishes the open chunks that a table had; a series remembers its last row with it.
    pub(crate) number: u64,
    rows: Vec<Row>,
    bodies: Vec<u8>,
    extent: Option<Extent>,
    /// Made once, of a frozen chunk.
    sorted: OnceLock<Arc<SortedRows>>,
}

/// Smallest and largest series and time of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
}

#[derive(Debug, Clone, Copy)]
struct Row {
    ts: i64,
    sequence: u64,
    series: u32,
    previous: u32,
    body_end: u32,
}

impl Chunk {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Memory taken, including the order that a frozen chunk will get.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * (size_of::<Row>() + SORTED_ROW_BYTES) + self.bodies.capacity()
    }

    /// Bytes of all rows' fields.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bodies.len()
    }

    /// Whether the next row should go to a new chunk.
    #[inline]
    pub(crate) fn is_full(&self, rows_max: usize) -> bool {
        self.rows.len() >= rows_max || self.bodies.len() >= CHUNK_BODY_BYTES_MAX
    }

    /// Where the fields of the next row are to be encoded, before [`push`](Self::push).
    #[inline]
    pub(crate) fn body_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bodies
    }

    /// Completes a row whose fields were encoded into [`body_buffer`](Self::body_buffer) and returns its bytes.
    #[inline]
    pub(crate) fn push(&mut self, series: u32, ts: i64, sequence: u64, previous: u32) -> &[u8] {
        let start = self.rows.last().map_or(0, |row| row.body_end as usize);
        let body_end = self.bodies.len() as u32;
        self.rows.push(Row { ts, sequence, series, previous, body_end });
        let extent = self.extent.get_or_insert(Extent { series: (series, series), ts: (ts, ts) });
        extent.series = (extent.series.0.min(series), extent.series.1.max(series));
        extent.ts = (extent.ts.0.min(ts), extent.ts.1.max(ts));
        &self.bodies[start..]
    }

    pub(crate) fn series(&self, row: u32) -> u32 {
        self.rows[row as usize].series
    }

    pub(crate) fn ts(&self, row: u32) -> i64 {
        self.rows[row as usize].ts
    }

    /// Smallest and largest series and time; `None` when there are no rows.
    pub(crate) fn extent(&self) -> Option<Extent> {
        self.extent
    }

    pub(crate) fn sequence(&self, row: u32) -> u64 {
        self.rows[row as usize].sequence
    }

    pub(crate) fn body(&self, row: u32) -> &[u8] {
        let start = match row {
            0 => 0,
            row => self.rows[row as usize - 1].body_end as usize,
        };
        &self.bodies[start..self.rows[row as usize].body_end as usize]
    }

    pub(crate) fn fields(&self, row: u32) -> impl Iterator<Item = (KeyId, ValueRef<'_>)> {
        row::fields(self.body(row))
    }

    /// Rows of the series whose last row is `last`, newest arrival first. For open chunks.
    pub(crate) fn chain(&self, last: u32) -> impl Iterator<Item = u32> {
        let previous = |row: &u32| Some(self.rows[*row as usize].previous).filter(|row| *row != NO_ROW);
        std::iter::successors(Some(last), previous)
    }

    /// A chunk with a copy of all rows. Like every copy it has the number 0, which no other chunk has.
    pub(crate) fn copy(&self) -> Self {
        let (rows, bodies) = (self.rows.clone(), self.bodies.clone());
        Self { number: 0, rows, bodies, extent: self.extent, sorted: OnceLock::new() }
    }

    /// A chunk with a copy of some rows, in their order.
    pub(crate) fn copy_of(&self, rows: &[u32]) -> Self {
        let mut copy = Self::new(0);
        let mut previous = NO_ROW;
        for row in rows {
            copy.bodies.extend_from_slice(self.body(*row));
            let Row { ts, sequence, series, .. } = self.rows[*row as usize];
            copy.push(series, ts, sequence, previous);
            previous = copy.len() as u32 - 1;
        }
        copy
    }

    /// Gives back memory that an open chunk keeps for growth.
    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.bodies.shrink_to_fit();
    }

    /// Rows of one series by time and arrival, those without fields left out. For frozen chunks.
    pub(crate) fn rows_of(&self, series: u32) -> impl Iterator<Item = u32> {
        self.sorted().places_of(series).iter().copied()
    }

    /// All rows in the order of a part. For frozen chunks.
    pub(crate) fn sorted(&self) -> &Arc<SortedRows> {
        self.sorted.get_or_init(|| Arc::new(SortedRows::new(self, 0..self.len() as u32)))
    }
}

/// What [`SortedRows`] takes for each row: time, place, and a run or the end of a row of several places.
const SORTED_ROW_BYTES: usize = 20;

// A row's place in the bytes has 32 bits.
const _: () = assert!(CHUNK_BODY_BYTES_MAX + LOG_PENDING_BYTES_MAX < u32::MAX as usize, "places fit");

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Chunk {
        let mut chunk = Chunk::new(1);
        let mut last = [NO_ROW; 2];
        for (number, series) in [0, 1, 0, 0, 1].into_iter().enumerate() {
            row::put_field(chunk.body_buffer(), 3, ValueRef::I64(number as i64));
            let body = chunk.push(series, 10 - number as i64, number as u64 + 1, last[series as usize]);
            assert_eq!(body, [3 << 3 | 2, number as u8 * 2]);
            last[series as usize] = number as u32;
        }
        chunk
    }

    #[test]
    fn one_series_is_found_in_open_and_frozen_chunks() {
        let chunk = chunk();
        assert_eq!(chunk.chain(3).collect::<Vec<_>>(), [3, 2, 0]);
        assert_eq!(chunk.rows_of(0).collect::<Vec<_>>(), [3, 2, 0]);
        assert_eq!(chunk.rows_of(1).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(chunk.rows_of(2).count(), 0);
    }

    #[test]
    fn copies_keep_rows_whole() {
        let copy = chunk().copy_of(&[1, 4]);
        let rows: Vec<_> =
            (0..2).map(|row| (copy.ts(row), copy.sequence(row), copy.fields(row).next())).collect();
        assert_eq!(rows, [(9, 2, Some((3, ValueRef::I64(1)))), (6, 5, Some((3, ValueRef::I64(4))))]);
    }
}
