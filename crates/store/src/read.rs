//! Reads of one series.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray};
use model::{FieldType, SeriesId, TimeRange, Timestamp, Value, ValueRef};

/// The direction of a scan.
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
    /// The series to read.
    pub series: SeriesId,
    /// The keys to read, by the names under which they were reported. A scan finds the values of all types of a key.
    pub keys: Vec<String>,
    /// The time to read, half-open.
    pub range: TimeRange,
    /// The direction.
    pub order: Order,
    /// The largest number of rows to visit.
    pub limit: usize,
}

/// One row of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScannedRow<'a> {
    /// The time of the row.
    pub ts: Timestamp,
    /// For each of [`Scan::keys`], in their order, the value or `None`.
    pub values: &'a [Option<ValueRef<'a>>],
}

/// Some rows of a scan, as columns. A row may have no value at all.
#[derive(Debug, Clone, Copy)]
pub struct ScannedBlock<'a> {
    /// The times of the rows in microseconds, in the order of the scan.
    pub times: &'a [i64],
    /// For each of [`Scan::keys`] its columns, one for each type. A row has a value in at most one of them.
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
    /// Wraps an array of the Arrow type of the field type ([`arrow_type`](crate::table::arrow_type)).
    pub fn new(array: &ArrayRef, field_type: FieldType) -> Self {
        match field_type {
            FieldType::Bool => Self::Bool(array.as_boolean().clone()),
            FieldType::I64 => Self::I64(array.as_primitive::<Int64Type>().clone()),
            FieldType::F64 => Self::F64(array.as_primitive::<Float64Type>().clone()),
            FieldType::String => Self::String(array.as_string_view().clone()),
            FieldType::Json => Self::Json(array.as_string_view().clone()),
        }
    }

    /// The value of a row; `None` if it has no value.
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
    /// The name under which it was reported.
    pub key: String,
    /// The time of the value.
    pub ts: Timestamp,
    /// The value.
    pub value: Value,
}
