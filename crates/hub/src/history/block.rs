//! Values of a key in a block that the store scans.

use arrow_array::Array;
use model::{Value, ValueRef};
use store::ValueColumn;

/// The values of a key in a block, if every row has an f64. This is the common case.
pub fn numbers(columns: &[ValueColumn]) -> Option<&[f64]> {
    match columns {
        [ValueColumn::F64(array)] if array.nulls().is_none_or(|nulls| nulls.null_count() == 0) => {
            Some(array.values())
        }
        _ => None,
    }
}

/// The number of an f64 value; `None` for other types.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    if let Value::F64(number) = value { Some(*number) } else { None }
}

/// The value of a key in a row of a block.
pub(super) fn value_of(columns: &[ValueColumn], row: usize) -> Option<ValueRef<'_>> {
    columns.iter().find_map(|column| column.get(row))
}
