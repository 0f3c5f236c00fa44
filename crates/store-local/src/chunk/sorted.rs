//! Sorted rows: rows of a chunk in the order of a part, each (series, ts) once, with their fields as columns.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringViewBuilder};
use arrow_array::{ArrayRef, TimestampMicrosecondArray};
use arrow_buffer::ScalarBuffer;
use model::{FieldType, ValueRef};
use store::table::UTC;

use crate::array_cache::SeriesRun;
use crate::row::{Fields, KeyId};

/// The rows of a table that the rows of a chunk make. Several rows of a chunk may make one row.
#[derive(Debug)]
pub(crate) struct SortedRows {
    pub(crate) runs: Arc<[SeriesRun]>,
    pub(crate) ts: ScalarBuffer<i64>,
    /// Rows of the chunk by series, time and arrival.
    chunk_rows: Vec<u32>,
    /// By row: the index after its last row of the chunk. Empty when each row is one row of the chunk.
    ends: Vec<u32>,
}

impl SortedRows {
    /// Sorts rows of a chunk: the series, the time and the number of each.
    pub(super) fn new(rows: impl Iterator<Item = (u32, i64, u32)>) -> Self {
        let key = |(series, ts, row): (u32, i64, u32)| {
            // One number to compare, negative times first.
            let ts = ts as u64 ^ 1 << 63;
            u128::from(series) << 96 | u128::from(ts) << 32 | u128::from(row)
        };
        let mut keys: Vec<u128> = rows.map(key).collect();
        keys.sort_unstable();
        let (mut runs, mut ts, mut ends): (Vec<SeriesRun>, Vec<i64>, Vec<u32>) = Default::default();
        let mut last = None;
        for (at, key) in keys.iter().enumerate() {
            if last != Some(key >> 32) {
                last = Some(key >> 32);
                ts.push(((key >> 32) as u64 ^ 1 << 63) as i64);
                ends.push(0);
                let (series, end) = ((key >> 96) as u32, ts.len() as u32);
                match runs.last_mut() {
                    Some(run) if run.series == series => run.end = end,
                    _ => runs.push(SeriesRun { series, end }),
                }
            }
            if let Some(end) = ends.last_mut() {
                *end = at as u32 + 1;
            }
        }
        if ends.len() == keys.len() {
            ends = Vec::new();
        }
        Self {
            runs: runs.into(),
            ts: ts.into(),
            chunk_rows: keys.iter().map(|key| *key as u32).collect(),
            ends,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ts.len()
    }

    /// The rows of the chunk of one series, by time and arrival.
    pub(crate) fn chunk_rows_of(&self, series: u32) -> &[u32] {
        let run = self.runs.partition_point(|run| run.series < series);
        match self.runs.get(run) {
            Some(found) if found.series == series => {
                let first = run.checked_sub(1).map_or(0, |before| self.runs[before].end as usize);
                &self.chunk_rows[self.start(first)..self.start(found.end as usize)]
            }
            _ => &[],
        }
    }

    /// The index of the first row of the chunk for a row.
    fn start(&self, row: usize) -> usize {
        match self.ends.is_empty() {
            true => row,
            false => row.checked_sub(1).map_or(0, |before| self.ends[before] as usize),
        }
    }

    /// The rows of the chunk for some rows.
    pub(crate) fn chunk_rows(&self, rows: std::ops::Range<u32>) -> &[u32] {
        &self.chunk_rows[self.start(rows.start as usize)..self.start(rows.end as usize)]
    }

    /// The time column.
    pub(crate) fn ts_array(&self) -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::new(self.ts.clone(), None).with_timezone(UTC))
    }

    /// Several columns of all rows; `fields_of` gives the fields of a row of the chunk. Of the writes of a key the last
    /// one counts, whatever its type.
    pub(super) fn columns<'c>(
        &self,
        fields_of: impl Fn(u32) -> Fields<'c>,
        wanted: &[(KeyId, FieldType)],
    ) -> Vec<ArrayRef> {
        let mut keys: Vec<KeyId> = wanted.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        // By key number: the index into `values`, plus one.
        let mut index = vec![0_u32; keys.last().map_or(0, |key| *key as usize + 1)];
        keys.iter().enumerate().for_each(|(at, key)| index[*key as usize] = at as u32 + 1);
        let mut columns: Vec<(usize, ColumnBuilder)> = wanted
            .iter()
            .map(|(key, of)| (index[*key as usize] as usize - 1, ColumnBuilder::new(*of, self.len())))
            .collect();
        let mut values: Vec<Option<ValueRef<'_>>> = vec![None; keys.len()];
        let mut at = 0;
        for row in 0..self.len() {
            values.fill(None);
            let end = self.start(row + 1);
            for row in &self.chunk_rows[at..end] {
                for (key, value) in fields_of(*row) {
                    match index.get(key as usize) {
                        Some(0) | None => {}
                        Some(at) => values[*at as usize - 1] = Some(value),
                    }
                }
            }
            at = end;
            columns.iter_mut().for_each(|(key, column)| column.push(values[*key]));
        }
        columns.into_iter().map(|(_, column)| column.finish()).collect()
    }
}

enum ColumnBuilder {
    Bool(BooleanBuilder),
    I64(Int64Builder),
    F64(Float64Builder),
    String(StringViewBuilder),
    Json(StringViewBuilder),
}

impl ColumnBuilder {
    fn new(field_type: FieldType, rows: usize) -> Self {
        match field_type {
            FieldType::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            FieldType::I64 => Self::I64(Int64Builder::with_capacity(rows)),
            FieldType::F64 => Self::F64(Float64Builder::with_capacity(rows)),
            FieldType::String => Self::String(StringViewBuilder::with_capacity(rows)),
            FieldType::Json => Self::Json(StringViewBuilder::with_capacity(rows)),
        }
    }

    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) {
        match (self, value) {
            (Self::Bool(column), Some(ValueRef::Bool(value))) => column.append_value(value),
            (Self::I64(column), Some(ValueRef::I64(value))) => column.append_value(value),
            (Self::F64(column), Some(ValueRef::F64(value))) => column.append_value(value),
            (Self::String(column), Some(ValueRef::String(value))) => column.append_value(value),
            (Self::Json(column), Some(ValueRef::Json(value))) => column.append_value(value),
            (Self::Bool(column), _) => column.append_null(),
            (Self::I64(column), _) => column.append_null(),
            (Self::F64(column), _) => column.append_null(),
            (Self::String(column) | Self::Json(column), _) => column.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bool(mut column) => Arc::new(column.finish()),
            Self::I64(mut column) => Arc::new(column.finish()),
            Self::F64(mut column) => Arc::new(column.finish()),
            Self::String(mut column) | Self::Json(mut column) => Arc::new(column.finish()),
        }
    }
}
