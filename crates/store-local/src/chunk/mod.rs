//! Chunks: rows of one table in memory, in the order of arrival, with a link from each row to the previous row of its
//! series.
//!
//! Series and times are columns. The fields of a row are the bytes of the log (docs/adr/0002-memtable-rows-as-bytes.md).
//! While all rows of a chunk have one f64 of the same key, the fields are a column of numbers instead
//! (docs/adr/0004-rows-of-one-number.md). Appends write the open chunk under the lock of the store. Readers and the flusher
//! share a frozen chunk; the first of them sorts it into the order of a part.

mod sorted;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use model::limits::{CHUNK_BODY_BYTES_MAX, LOG_PENDING_BYTES_MAX};
use model::{FieldType, ValueRef};

use crate::row::{self, Fields, KeyId};
pub(crate) use sorted::SortedRows;

/// A row number that means "no row".
pub(crate) const NO_ROW: u32 = u32::MAX;

/// Rows of one table.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The number of the chunk. A series remembers its last row together with this number.
    pub(crate) number: u64,
    series: Vec<u32>,
    ts: Vec<i64>,
    /// By row: the previous row of the series in this chunk.
    previous: Vec<u32>,
    bodies: Bodies,
    /// The sequences of the first and the last row.
    sequence: (u64, u64),
    extent: Option<Extent>,
    /// The sorted rows of a frozen chunk. The first reader computes them.
    sorted: OnceLock<Arc<SortedRows>>,
    /// Number of rows that reads of few series have decoded.
    decoded: AtomicUsize,
}

/// Smallest and largest series and time of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
}

/// The fields of the rows.
#[derive(Debug, Clone)]
enum Bodies {
    /// Encoded, row after row, with the end of each row.
    Bytes { bytes: Vec<u8>, ends: Vec<u32> },
    /// One number per row, all of this key.
    Numbers { key: KeyId, values: Vec<f64> },
}

impl Default for Bodies {
    fn default() -> Self {
        Self::Bytes { bytes: Vec::new(), ends: Vec::new() }
    }
}

/// Rows that have one f64 each, of the same key, as columns of equal length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub(crate) key: KeyId,
    pub(crate) series: &'a [u32],
    pub(crate) ts: &'a [i64],
    pub(crate) values: &'a [f64],
}

impl<'a> Numbers<'a> {
    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    /// Some of the rows.
    pub(crate) fn slice(&self, from: usize, to: usize) -> Self {
        let Self { key, series, ts, values } = *self;
        Self { key, series: &series[from..to], ts: &ts[from..to], values: &values[from..to] }
    }
}

impl Chunk {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The memory of the chunk, with the memory for its sorted rows.
    pub(crate) fn bytes(&self) -> usize {
        let sorted = self.series.capacity() * SORTED_ROW_BYTES;
        let heads = (self.series.capacity() + self.previous.capacity()) * size_of::<u32>()
            + self.ts.capacity() * size_of::<i64>();
        let bodies = match &self.bodies {
            Bodies::Bytes { bytes, ends } => bytes.capacity() + ends.capacity() * size_of::<u32>(),
            Bodies::Numbers { values, .. } => values.capacity() * size_of::<f64>(),
        };
        sorted + heads + bodies
    }

    /// Bytes of the fields of all rows.
    pub(crate) fn body_bytes(&self) -> usize {
        match &self.bodies {
            Bodies::Bytes { bytes, .. } => bytes.len(),
            Bodies::Numbers { values, .. } => size_of_val(values.as_slice()),
        }
    }

    /// Bytes of the fields of a row, on average.
    pub(crate) fn row_bytes(&self) -> usize {
        self.body_bytes() / self.len().max(1)
    }

    /// Whether a read of `rows` rows should decode the whole chunk, for all later reads. That is the case when single reads
    /// have decoded as many rows as the chunk has.
    pub(crate) fn pays_whole(&self, rows: usize) -> bool {
        self.decoded.fetch_add(rows, Ordering::Relaxed) + rows >= self.len()
    }

    /// The number of rows that still fit into this chunk.
    #[inline]
    pub(crate) fn room(&self, rows_max: usize) -> usize {
        match &self.bodies {
            Bodies::Bytes { bytes, .. } if bytes.len() >= CHUNK_BODY_BYTES_MAX => 0,
            _ => rows_max.saturating_sub(self.series.len()),
        }
    }

    /// The buffer for the fields of the next row. The caller encodes them before [`push`](Self::push).
    #[inline]
    pub(crate) fn body_buffer(&mut self) -> &mut Vec<u8> {
        if matches!(self.bodies, Bodies::Numbers { .. }) {
            self.encode_numbers();
        }
        match &mut self.bodies {
            Bodies::Bytes { bytes, .. } => bytes,
            Bodies::Numbers { .. } => unreachable!("BUG: numbers were just encoded"),
        }
    }

    /// Completes a row whose fields are in the [`body_buffer`](Self::body_buffer), and returns their bytes.
    #[inline]
    pub(crate) fn push(&mut self, series: u32, ts: i64, sequence: u64, previous: u32) -> &[u8] {
        self.count(sequence, sequence, &[series], &[ts]);
        self.series.push(series);
        self.ts.push(ts);
        self.previous.push(previous);
        let Bodies::Bytes { bytes, ends } = &mut self.bodies else {
            unreachable!("BUG: a row is pushed after its body");
        };
        let start = ends.last().map_or(0, |end| *end as usize);
        ends.push(bytes.len() as u32);
        &bytes[start..]
    }

    /// Whether [`push_numbers`](Self::push_numbers) can take rows with this key.
    #[inline]
    pub(crate) fn takes_numbers(&self, of: KeyId) -> bool {
        matches!(self.bodies, Bodies::Numbers { key, .. } if key == of) || self.is_empty()
    }

    /// Appends rows with sequences from `sequence` on. Calls `previous` for each row, in order, with its index in `rows` and
    /// its number in the chunk. The answer is the previous row of the series.
    #[inline]
    pub(crate) fn push_numbers(
        &mut self,
        rows: Numbers<'_>,
        sequence: u64,
        mut previous: impl FnMut(usize, u32) -> u32,
    ) {
        if self.is_empty() && matches!(self.bodies, Bodies::Bytes { .. }) {
            self.bodies = Bodies::Numbers { key: rows.key, values: Vec::new() };
        }
        let Bodies::Numbers { key, values } = &mut self.bodies else {
            unreachable!("BUG: numbers are pushed to a chunk that takes them");
        };
        *key = rows.key;
        values.extend_from_slice(rows.values);
        self.count(sequence, sequence + rows.len() as u64 - 1, rows.series, rows.ts);
        let first = self.series.len() as u32;
        self.series.extend_from_slice(rows.series);
        self.ts.extend_from_slice(rows.ts);
        self.previous.extend((0..rows.len()).map(|index| previous(index, first + index as u32)));
    }

    /// Like [`push_numbers`](Self::push_numbers) with one row, for a chunk that has other rows.
    pub(crate) fn push_number_as_bytes(
        &mut self,
        row: Numbers<'_>,
        sequence: u64,
        previous: impl FnOnce(u32) -> u32,
    ) {
        row::put_field(self.body_buffer(), row.key, ValueRef::F64(row.values[0]));
        let previous = previous(self.len() as u32);
        self.push(row.series[0], row.ts[0], sequence, previous);
    }

    /// Updates sequences and extent for rows that are about to be added.
    #[inline]
    fn count(&mut self, first: u64, last: u64, series: &[u32], ts: &[i64]) {
        if self.series.is_empty() {
            self.sequence.0 = first;
        }
        self.sequence.1 = last;
        let extent = self.extent.get_or_insert(Extent { series: (u32::MAX, 0), ts: (i64::MAX, i64::MIN) });
        let wider = |(min, max): (u32, u32), of: &u32| (min.min(*of), max.max(*of));
        extent.series = series.iter().fold(extent.series, wider);
        let wider = |(min, max): (i64, i64), of: &i64| (min.min(*of), max.max(*of));
        extent.ts = ts.iter().fold(extent.ts, wider);
    }

    /// Converts the column of numbers to encoded bodies.
    #[cold]
    fn encode_numbers(&mut self) {
        if let Bodies::Numbers { key, values } = &self.bodies {
            let mut bytes = Vec::new();
            let put = |value: &f64| {
                row::put_field(&mut bytes, *key, ValueRef::F64(*value));
                bytes.len() as u32
            };
            let ends = values.iter().map(put).collect();
            self.bodies = Bodies::Bytes { bytes, ends };
        }
    }

    /// All rows as columns, if each has one f64 of the same key.
    pub(crate) fn numbers(&self) -> Option<Numbers<'_>> {
        match &self.bodies {
            Bodies::Numbers { key, values } => {
                Some(Numbers { key: *key, series: &self.series, ts: &self.ts, values })
            }
            Bodies::Bytes { .. } => None,
        }
    }

    pub(crate) fn series(&self, row: u32) -> u32 {
        self.series[row as usize]
    }

    pub(crate) fn ts(&self, row: u32) -> i64 {
        self.ts[row as usize]
    }

    /// The times of all rows.
    pub(crate) fn times(&self) -> &[i64] {
        &self.ts
    }

    /// The sequences of the first and the last row. The others are between them.
    pub(crate) fn sequences(&self) -> (u64, u64) {
        self.sequence
    }

    /// Smallest and largest series and time; `None` when there are no rows.
    pub(crate) fn extent(&self) -> Option<Extent> {
        self.extent
    }

    /// Whether a row has any field.
    pub(crate) fn has_fields(&self, row: u32) -> bool {
        match &self.bodies {
            Bodies::Numbers { .. } => true,
            Bodies::Bytes { .. } => !self.encoded(row).is_empty(),
        }
    }

    #[inline]
    pub(crate) fn fields(&self, row: u32) -> Fields<'_> {
        match &self.bodies {
            Bodies::Numbers { key, values } => Fields::number(*key, values[row as usize]),
            Bodies::Bytes { .. } => row::fields(self.encoded(row)),
        }
    }

    fn encoded(&self, row: u32) -> &[u8] {
        let Bodies::Bytes { bytes, ends } = &self.bodies else {
            unreachable!("BUG: asked for the bytes of numbers");
        };
        let start = match row {
            0 => 0,
            row => ends[row as usize - 1],
        };
        &bytes[start as usize..ends[row as usize] as usize]
    }

    /// The rows of the series whose last row is `last`, newest arrival first. For open chunks.
    pub(crate) fn chain(&self, last: u32) -> impl Iterator<Item = u32> {
        let previous = |row: &u32| Some(self.previous[*row as usize]).filter(|row| *row != NO_ROW);
        std::iter::successors(Some(last), previous)
    }

    /// A copy of the chunk. Every copy has the number 0, which no other chunk has.
    pub(crate) fn copy(&self) -> Self {
        Self {
            number: 0,
            series: self.series.clone(),
            ts: self.ts.clone(),
            previous: self.previous.clone(),
            bodies: self.bodies.clone(),
            sequence: self.sequence,
            extent: self.extent,
            sorted: OnceLock::new(),
            decoded: AtomicUsize::new(0),
        }
    }

    /// A chunk with copies of some rows, in their order. It has the sequences and the extent of the whole chunk.
    pub(crate) fn copy_of(&self, rows: &[u32]) -> Self {
        let mut copy = Self::new(0);
        let previous = |index: usize| if index == 0 { NO_ROW } else { index as u32 - 1 };
        copy.series = rows.iter().map(|row| self.series(*row)).collect();
        copy.ts = rows.iter().map(|row| self.ts(*row)).collect();
        copy.previous = (0..rows.len()).map(previous).collect();
        (copy.sequence, copy.extent) = (self.sequence, self.extent);
        copy.bodies = match &self.bodies {
            Bodies::Numbers { key, values } => {
                let values = rows.iter().map(|row| values[*row as usize]).collect();
                Bodies::Numbers { key: *key, values }
            }
            Bodies::Bytes { .. } => {
                let mut bytes = Vec::new();
                let mut put = |row: &u32| {
                    bytes.extend_from_slice(self.encoded(*row));
                    bytes.len() as u32
                };
                let ends = rows.iter().map(&mut put).collect();
                Bodies::Bytes { bytes, ends }
            }
        };
        copy
    }

    /// Frees the memory that an open chunk reserves for growth.
    pub(crate) fn shrink(&mut self) {
        self.series.shrink_to_fit();
        self.ts.shrink_to_fit();
        self.previous.shrink_to_fit();
        match &mut self.bodies {
            Bodies::Numbers { values, .. } => values.shrink_to_fit(),
            Bodies::Bytes { bytes, ends } => {
                bytes.shrink_to_fit();
                ends.shrink_to_fit();
            }
        }
    }

    /// The rows of one series by time and arrival, without the rows that have no fields. For frozen chunks.
    pub(crate) fn rows_of(&self, series: u32) -> impl Iterator<Item = u32> {
        self.sorted().chunk_rows_of(series).iter().copied()
    }

    /// All rows in the order of a part. For frozen chunks.
    pub(crate) fn sorted(&self) -> &Arc<SortedRows> {
        self.sorted.get_or_init(|| Arc::new(self.sort(0..self.len() as u32)))
    }

    /// Some rows in the order of a part, without the rows that have no fields.
    pub(crate) fn sort(&self, rows: impl Iterator<Item = u32>) -> SortedRows {
        let rows = rows.filter(|row| self.has_fields(*row));
        SortedRows::new(rows.map(|row| (self.series(row), self.ts(row), row)))
    }

    /// Several columns of sorted rows of this chunk.
    pub(crate) fn columns(&self, rows: &SortedRows, wanted: &[(KeyId, FieldType)]) -> Vec<ArrayRef> {
        rows.columns(|row| self.fields(row), wanted)
    }
}

/// Bytes of [`SortedRows`] for each row: its time, its row of the chunk, and a run or an end.
const SORTED_ROW_BYTES: usize = 20;

// The position of a row in the bytes has 32 bits.
const _: () = assert!(CHUNK_BODY_BYTES_MAX + LOG_PENDING_BYTES_MAX < u32::MAX as usize, "positions fit");

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

    fn numbers() -> Chunk {
        let mut chunk = Chunk::new(1);
        assert!(chunk.takes_numbers(3));
        let rows = Numbers {
            key: 3,
            series: &[0, 1, 0, 0, 1],
            ts: &[10, 9, 8, 7, 6],
            values: &[0.0, 0.5, 1.0, 1.5, 2.0],
        };
        let mut last = [NO_ROW; 2];
        for (from, to) in [(0, 2), (2, 5)] {
            let part = rows.slice(from, to);
            chunk.push_numbers(part, from as u64 + 1, |index, row| {
                std::mem::replace(&mut last[part.series[index] as usize], row)
            });
        }
        assert!(chunk.takes_numbers(3) && !chunk.takes_numbers(4));
        chunk
    }

    #[test]
    fn one_series_is_found_in_open_and_frozen_chunks() {
        for chunk in [chunk(), numbers()] {
            assert_eq!(chunk.chain(3).collect::<Vec<_>>(), [3, 2, 0]);
            assert_eq!(chunk.rows_of(0).collect::<Vec<_>>(), [3, 2, 0]);
            assert_eq!(chunk.rows_of(1).collect::<Vec<_>>(), [4, 1]);
            assert_eq!(chunk.rows_of(2).count(), 0);
            assert_eq!(chunk.sequences(), (1, 5));
            assert_eq!(chunk.extent(), Some(Extent { series: (0, 1), ts: (6, 10) }));
        }
    }

    #[test]
    fn copies_keep_rows_whole() {
        let rows = |chunk: &Chunk| -> Vec<_> {
            let copy = chunk.copy_of(&[1, 4]);
            assert_eq!(copy.chain(1).collect::<Vec<_>>(), [1, 0]);
            (0..2)
                .map(|row| (copy.ts(row), copy.fields(row).collect::<Vec<_>>()[0]))
                .map(|(ts, (key, value))| (ts, key, value.to_owned()))
                .collect()
        };
        assert_eq!(rows(&chunk()), [(9, 3, model::Value::I64(1)), (6, 3, model::Value::I64(4))]);
        assert_eq!(rows(&numbers()), [(9, 3, model::Value::F64(0.5)), (6, 3, model::Value::F64(2.0))]);
    }

    #[test]
    fn numbers_become_bytes_when_another_row_comes() {
        let mut mixed = numbers();
        mixed.body_buffer();
        mixed.push(0, 5, 6, 3);
        assert!(!mixed.takes_numbers(3) && mixed.numbers().is_none());
        let before = numbers();
        for row in 0..5 {
            assert!(mixed.fields(row).eq(before.fields(row)) && mixed.has_fields(row));
        }
        assert!(!mixed.has_fields(5));
        assert_eq!((mixed.chain(5).count(), mixed.sequences()), (4, (1, 6)));
    }
}
