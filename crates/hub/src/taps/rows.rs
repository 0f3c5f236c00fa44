//! The rows of one batch, as a tap keeps them.

use std::ops::Range;

use model::{Batch, SeriesId, Timestamp, ValueRef};
use store::Sequence;

use super::keys::WantedKeys;

/// The wanted values of one batch: three allocations, however many rows there are.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The sequence of the batch.
    pub(super) sequence: Sequence,
    rows: Vec<RowHead>,
    values: Vec<(u16, Compact)>,
    text: String,
}

#[derive(Debug)]
struct RowHead {
    series: SeriesId,
    ts: Timestamp,
    generation: u64,
    values: Range<usize>,
}

/// A value whose text is in [`Rows::text`].
#[derive(Debug)]
enum Compact {
    Bool(bool),
    I64(i64),
    F64(f64),
    String(Range<usize>),
    Json(Range<usize>),
}

/// A row of a tap.
#[derive(Debug, Clone, Copy)]
pub struct TapRow<'a> {
    rows: &'a Rows,
    head: &'a RowHead,
}

impl Rows {
    /// Adds the wanted values of a row. A row without one is left out, unless all rows are wanted.
    pub(super) fn add(&mut self, row: model::RowRef<'_>, wanted: &WantedKeys) {
        let start = self.values.len();
        for field in row.fields() {
            if let Some(number) = wanted.number(field.key) {
                let value = self.compact(field.value);
                self.values.push((number, value));
            }
        }
        let values = start..self.values.len();
        if !values.is_empty() || wanted.wants_all_rows() {
            let (series, ts, generation) = (row.series(), row.ts(), wanted.generation());
            self.rows.push(RowHead { series, ts, generation, values });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<RowHead>()
            + self.values.capacity() * size_of::<(u16, Compact)>()
            + self.text.capacity()
    }

    pub(super) fn series(&self) -> impl Iterator<Item = SeriesId> {
        self.rows.iter().map(|row| row.series)
    }

    /// Leaves out the rows of some series.
    pub(super) fn leave_out(&mut self, is_out: impl Fn(SeriesId) -> bool) {
        self.rows.retain(|row| !is_out(row.series));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = TapRow<'_>> {
        self.rows.iter().map(|head| TapRow { rows: self, head })
    }

    /// The rows of wanted series in a batch.
    pub(super) fn of<'a>(batch: &Batch, wanted: impl Fn(SeriesId) -> Option<&'a WantedKeys>) -> Self {
        let mut rows = Self::default();
        for row in batch.rows() {
            if let Some(keys) = wanted(row.series()) {
                rows.add(row, keys);
            }
        }
        rows
    }

    fn compact(&mut self, value: ValueRef<'_>) -> Compact {
        let mut keep = |text: &str| {
            let start = self.text.len();
            self.text.push_str(text);
            start..self.text.len()
        };
        match value {
            ValueRef::Bool(value) => Compact::Bool(value),
            ValueRef::I64(value) => Compact::I64(value),
            ValueRef::F64(value) => Compact::F64(value),
            ValueRef::String(text) => Compact::String(keep(text)),
            ValueRef::Json(text) => Compact::Json(keep(text)),
        }
    }
}

impl<'a> TapRow<'a> {
    pub fn series(self) -> SeriesId {
        self.head.series
    }

    pub fn ts(self) -> Timestamp {
        self.head.ts
    }

    /// The sequence of the batch of the row.
    pub fn sequence(self) -> Sequence {
        self.rows.sequence
    }

    /// The generation of the numbers of the keys.
    pub fn generation(self) -> u64 {
        self.head.generation
    }

    /// The wanted values with the numbers of their keys.
    pub fn values(self) -> impl Iterator<Item = (u16, ValueRef<'a>)> {
        let Self { rows, head } = self;
        rows.values[head.values.clone()].iter().map(move |(number, value)| {
            let value = match value {
                Compact::Bool(value) => ValueRef::Bool(*value),
                Compact::I64(value) => ValueRef::I64(*value),
                Compact::F64(value) => ValueRef::F64(*value),
                Compact::String(range) => ValueRef::String(&rows.text[range.clone()]),
                Compact::Json(range) => ValueRef::Json(&rows.text[range.clone()]),
            };
            (*number, value)
        })
    }
}
