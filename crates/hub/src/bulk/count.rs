//! Counts the values of a device, so an import can verify them.

use std::collections::BTreeMap;

use arrow_array::Array;
use model::series::DEVICE_TAG;
use model::{TableName, TimeRange};
use store::{Column, Store, TagMatcher, TagPredicate};

use super::BulkError;
use crate::table_scan::each_batch;

/// The number of values of each key of a device in a time range.
///
/// # Errors
/// The table does not exist, or a file cannot be read.
pub fn count_values(
    store: &dyn Store,
    table: &TableName,
    device: &str,
    range: TimeRange,
) -> Result<BTreeMap<String, u64>, BulkError> {
    let snapshot = store.snapshot(table)?;
    let snapshot = snapshot.ok_or_else(|| BulkError::no_table(store, table))?;
    let columns = snapshot.columns();
    let width = columns.schema().fields().len();
    let fields = (0..width).filter_map(|index| match columns.column(index)? {
        Column::Field(field) => Some((index, field.key.to_string())),
        _ => None,
    });
    let (indices, keys): (Vec<usize>, Vec<String>) = fields.unzip();
    let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys.into_iter().enumerate() {
        by_key.entry(key).or_default().push(at);
    }
    let predicate = TagPredicate::Is(device.to_owned());
    let matcher = TagMatcher { tag: DEVICE_TAG.to_owned(), predicate };
    let series = snapshot.select(&[matcher])?;
    let mut counts = BTreeMap::new();
    each_batch(&*snapshot, indices, Some(series), range, |batch| {
        for (key, of_key) in &by_key {
            // A key may have columns of several types, and the column of floats repeats the integers.
            let has_value = |row: &usize| of_key.iter().any(|at| batch.column(*at).is_valid(*row));
            let values = (0..batch.num_rows()).filter(has_value).count() as u64;
            *counts.entry(key.clone()).or_insert(0) += values;
        }
    })?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::conformance::table;
    use store::{Durability, MemoryStore, Writer};

    use super::*;

    #[test]
    fn values_are_counted_by_key_over_all_types() {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for (device, ts, value) in [
            ("a", 1, ValueRef::I64(1)),
            ("a", 2, ValueRef::String("x")),
            ("a", 9, ValueRef::I64(3)),
            ("b", 1, ValueRef::I64(4)),
        ] {
            let series = store.series(&SeriesKey::device("t", device).unwrap()).unwrap();
            let mut builder = batch.builder();
            builder.field("n", value);
            builder.row(series, Timestamp::from_micros(ts));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let range = TimeRange::new(Timestamp::from_micros(0), Timestamp::from_micros(3));
        let counts = count_values(&store, &table("t"), "a", range).unwrap();
        assert_eq!(counts, BTreeMap::from([("n".to_owned(), 2)]));
        assert!(count_values(&store, &table("u"), "a", range).is_err());
    }
}
