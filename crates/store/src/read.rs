//! What can be asked of a store.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray};
use model::{FieldType, SeriesId, TimeRange, Timestamp, Value, ValueRef};

/// In which direction a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// A read of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Which series.
    pub series: SeriesId,
    /// Which keys, by the name they were reported under; values of all types are found under it.
    pub keys: Vec<String>,
    /// Which time, half-open.
    pub range: TimeRange,
    /// Which direction.
    pub order: Order,
    /// Most rows to visit.
    pub limit: usize,
}

/// One row of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScannedRow<'a> {
    /// The row's time.
    pub ts: Timestamp,
    /// A value or nothing for each of [`Scan::keys`], in their order.
    pub values: &'a [Option<ValueRef<'a>>],
}

/// Some rows of a scan, column by column. A row may have no value at all.
#[derive(Debug, Clone, Copy)]
pub struct ScannedBlock<'a> {
    /// The rows' times in microseconds, in the order of the scan.
    pub times: &'a [i64],
    /// For each of [`Scan::keys`] its columns, one for each type it may have; a row has a value in one of them at most.
    pub columns: &'a [Vec<ValueColumn>],
}

/// The values of one key and type.
#[derive(Debug, Clone)]
pub enum ValueColumn {
    /// Of [`FieldType::Bool`].
    Bool(BooleanArray),
    /// Of [`FieldType::I64`].
    I64(Int64Array),
    /// Of [`FieldType::F64`].
    F64(Float64Array),
    /// Of [`FieldType::String`].
    String(StringViewArray),
    /// Of [`FieldType::Json`].
    Json(StringViewArray),
}

impl ValueColumn {
    /// From an array of the Arrow type that belongs to the field type ([`arrow_type`](crate::table::arrow_type)).
    pub fn new(array: &ArrayRef, field_type: FieldType) -> Self {
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
    pub fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        match self {
            Self::Bool(array) => array.is_valid(row).then(|| ValueRef::Bool(array.value(row))),
            Self::I64(array) => array.is_valid(row).then(|| ValueRef::I64(array.value(row))),
            Self::F64(array) => array.is_valid(row).then(|| ValueRef::F64(array.value(row))),
            Self::String(array) => array.is_valid(row).then(|| ValueRef::String(array.value(row))),
            Self::Json(array) => array.is_valid(row).then(|| ValueRef::Json(array.value(row))),
        }
    }
}

/// The newest value of one key of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue {
    /// The name it was reported under.
    pub key: String,
    /// When.
    pub ts: Timestamp,
    /// What.
    pub value: Value,
}
