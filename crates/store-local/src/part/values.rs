//! Decoded columns.

use model::{FieldType, ValueRef};
use parquet::data_type::ByteArray;

/// Values of one column in some rows.
pub(crate) struct Values {
    typed: Typed,
    /// By row: the place of its value; `None` when every row has one.
    places: Option<Vec<u32>>,
}

pub(crate) enum Typed {
    Bool(Vec<bool>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    /// Checked to be UTF-8.
    Text(Vec<ByteArray>, FieldType),
}

const NO_VALUE: u32 = u32::MAX;

impl Values {
    /// Values and the definition level of each row; no levels if every row has a value.
    pub(crate) fn new(typed: Typed, levels: &[i16]) -> Self {
        if levels.iter().all(|level| *level != 0) {
            return Self { typed, places: None };
        }
        let mut next = 0;
        let mut places = Vec::with_capacity(levels.len());
        for level in levels {
            places.push(if *level == 0 { NO_VALUE } else { next });
            next += u32::from(*level != 0);
        }
        Self { typed, places: Some(places) }
    }

    /// The value of a row, if it has one.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        let place = match &self.places {
            None => row,
            Some(places) => *places.get(row)? as usize,
        };
        Some(match &self.typed {
            Typed::Bool(values) => ValueRef::Bool(*values.get(place)?),
            Typed::I64(values) => ValueRef::I64(*values.get(place)?),
            Typed::F64(values) => ValueRef::F64(*values.get(place)?),
            Typed::Text(values, field_type) => {
                let text =
                    std::str::from_utf8(values.get(place)?.data()).expect("BUG: checked when it was read");
                match field_type {
                    FieldType::Json => ValueRef::Json(text),
                    _ => ValueRef::String(text),
                }
            }
        })
    }

    /// Whether a row has a value.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.places.as_ref().is_none_or(|places| places[row] != NO_VALUE)
    }

    /// The values of a column of doubles.
    pub(crate) fn doubles(&self) -> &[f64] {
        match &self.typed {
            Typed::F64(values) => values,
            _ => &[],
        }
    }

    /// The numbers of a column in which every row has one.
    pub(crate) fn numbers(&self) -> &[i64] {
        match &self.typed {
            Typed::I64(values) => values,
            _ => &[],
        }
    }

    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        let places = self.places.as_ref().map_or(0, |places| size_of_val(places.as_slice()));
        places
            + match &self.typed {
                Typed::Bool(values) => values.len(),
                Typed::I64(values) => size_of_val(values.as_slice()),
                Typed::F64(values) => size_of_val(values.as_slice()),
                Typed::Text(values, _) => {
                    values.iter().map(|value| size_of::<ByteArray>() + value.data().len()).sum()
                }
            }
            + size_of::<Self>()
    }
}

/// Where the rows of each series stand in a row group.
pub(crate) struct SeriesRuns {
    /// Series, first row, and the row behind the last, sorted.
    runs: Vec<(u32, u32, u32)>,
}

impl SeriesRuns {
    /// From the series of each row; equal ones stand together.
    pub(crate) fn new(series: &[i64]) -> Self {
        let mut start = 0;
        let run = |run: &[i64]| {
            let first = start;
            start += run.len() as u32;
            (run[0] as u32, first, start)
        };
        let mut runs: Vec<_> = series.chunk_by(|a, b| a == b).map(run).collect();
        // In a narrow part they are sorted only within each table.
        runs.sort_unstable();
        Self { runs }
    }

    /// The rows of a series; empty if it has none.
    pub(crate) fn rows(&self, series: u32) -> std::ops::Range<usize> {
        match self.runs.binary_search_by_key(&series, |run| run.0) {
            Ok(index) => self.runs[index].1 as usize..self.runs[index].2 as usize,
            Err(_) => 0..0,
        }
    }

    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.runs.as_slice()) + size_of::<Self>()
    }
}
