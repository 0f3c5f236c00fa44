//! Decoded values of a column, row by row.

use model::{FieldType, ValueRef};
use parquet::data_type::ByteArray;

/// The values of one column in some rows.
pub(crate) struct Values {
    typed: Typed,
    /// By row: the index of its value; `None` when every row has a value.
    positions: Option<Vec<u32>>,
}

pub(crate) enum Typed {
    Bool(Vec<bool>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    /// Valid UTF-8.
    Text(Vec<ByteArray>, FieldType),
}

const NO_VALUE: u32 = u32::MAX;

impl Values {
    /// From the values and the definition level of each row; no levels if every row has a value.
    pub(crate) fn new(typed: Typed, levels: &[i16]) -> Self {
        if levels.iter().all(|level| *level != 0) {
            return Self { typed, positions: None };
        }
        let mut next = 0;
        let mut positions = Vec::with_capacity(levels.len());
        for level in levels {
            positions.push(if *level == 0 { NO_VALUE } else { next });
            next += u32::from(*level != 0);
        }
        Self { typed, positions: Some(positions) }
    }

    /// The value of a row; `None` if it has no value.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        let position = match &self.positions {
            None => row,
            Some(positions) => *positions.get(row)? as usize,
        };
        Some(match &self.typed {
            Typed::Bool(values) => ValueRef::Bool(*values.get(position)?),
            Typed::I64(values) => ValueRef::I64(*values.get(position)?),
            Typed::F64(values) => ValueRef::F64(*values.get(position)?),
            Typed::Text(values, field_type) => {
                let text =
                    std::str::from_utf8(values.get(position)?.data()).expect("BUG: checked when it was read");
                match field_type {
                    FieldType::Json => ValueRef::Json(text),
                    _ => ValueRef::String(text),
                }
            }
        })
    }

    /// Whether a row has a value.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.positions.as_ref().is_none_or(|positions| positions[row] != NO_VALUE)
    }

    /// The values of a column of doubles.
    pub(crate) fn doubles(&self) -> &[f64] {
        match &self.typed {
            Typed::F64(values) => values,
            _ => &[],
        }
    }
}
