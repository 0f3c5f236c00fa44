//! Columns of a read of one series, value by value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray};
use arrow_buffer::ScalarBuffer;
use model::{FieldType, ValueRef};

use crate::row::KeyId;
use crate::table::plan::Slot;

/// Some rows: their times, and a column for each slot.
pub(super) struct Columns {
    times: ScalarBuffer<i64>,
    columns: Vec<Column>,
}

/// Values of one type.
pub(crate) enum Column {
    Bool(BooleanArray),
    I64(Int64Array),
    F64(Float64Array),
    String(StringViewArray),
    Json(StringViewArray),
}

impl Columns {
    /// From the arrays of a batch: the time, then the slots, whose types are given.
    pub(super) fn new(arrays: &[ArrayRef], types: &[FieldType]) -> Self {
        let times = arrays[0].as_primitive::<TimestampMicrosecondType>().values().clone();
        let columns = arrays[1..].iter().zip(types).map(|(array, of)| Column::new(array, *of)).collect();
        Self { times, columns }
    }

    /// The times of the rows.
    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    /// The columns of a key; of these at most one has a value in a row.
    pub(super) fn of_key(&self, slots: &[Slot], key: Option<KeyId>) -> impl Iterator<Item = &Column> {
        let columns = slots.iter().zip(&self.columns);
        columns.filter(move |(slot, _)| Some(slot.key) == key).map(|(_, column)| column)
    }
}

impl Column {
    pub(crate) fn new(array: &ArrayRef, field_type: FieldType) -> Self {
        match field_type {
            FieldType::Bool => Self::Bool(array.as_boolean().clone()),
            FieldType::I64 => Self::I64(array.as_primitive::<Int64Type>().clone()),
            FieldType::F64 => Self::F64(array.as_primitive::<Float64Type>().clone()),
            FieldType::String => Self::String(array.as_string_view().clone()),
            FieldType::Json => Self::Json(array.as_string_view().clone()),
        }
    }

    /// The value of a row, if it has one.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        match self {
            Self::Bool(array) => array.is_valid(row).then(|| ValueRef::Bool(array.value(row))),
            Self::I64(array) => array.is_valid(row).then(|| ValueRef::I64(array.value(row))),
            Self::F64(array) => array.is_valid(row).then(|| ValueRef::F64(array.value(row))),
            Self::String(array) => array.is_valid(row).then(|| ValueRef::String(array.value(row))),
            Self::Json(array) => array.is_valid(row).then(|| ValueRef::Json(array.value(row))),
        }
    }
}
