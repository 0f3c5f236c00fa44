//! The columns of rows of one series.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_buffer::ScalarBuffer;
use model::FieldType;
use store::ValueColumn;

use crate::catalog::Slot;
use crate::row::KeyId;

/// Rows of one series: their times, and a column for each slot.
pub(super) struct Columns {
    times: ScalarBuffer<i64>,
    columns: Vec<ValueColumn>,
}

impl Columns {
    /// From the arrays of a batch: the time, then the slots with these types.
    pub(super) fn new(arrays: &[ArrayRef], types: &[FieldType]) -> Self {
        let times = arrays[0].as_primitive::<TimestampMicrosecondType>().values().clone();
        let columns = arrays[1..].iter().zip(types).map(|(array, of)| ValueColumn::new(array, *of)).collect();
        Self { times, columns }
    }

    /// The times of the rows.
    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    /// The columns of a key. In a row at most one of them has a value.
    pub(super) fn of_key(&self, slots: &[Slot], key: Option<KeyId>) -> impl Iterator<Item = &ValueColumn> {
        let columns = slots.iter().zip(&self.columns);
        columns.filter(move |(slot, _)| Some(slot.key) == key).map(|(_, column)| column)
    }
}
