//! Counts rows of one file with the tags and the time of an earlier row. The store merges them into one row, in which the
//! later value wins. The report counts such rows, because the cause may be a time that was cut or a missing tag.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use arrow_array::RecordBatch;
use hub::bulk::Columns;

use crate::limits::IMPORT_SEEN_MAX;

/// Remembers rows by a 64-bit hash. With eight million rows, a collision happens in one of half a million files.
pub(super) struct DuplicateRows {
    seen: HashSet<u64>,
    hasher: RandomState,
    /// Compares fields instead of rows: lines of one time usually have different fields.
    by_field: bool,
    /// Number of repeated rows.
    pub(super) rows: u64,
    /// Whether some rows were not remembered, so that there may be more.
    pub(super) is_least: bool,
}

impl DuplicateRows {
    /// Starts without rows.
    pub(crate) fn new(by_field: bool) -> Self {
        let (seen, hasher) = (HashSet::new(), RandomState::new());
        Self { seen, hasher, by_field, rows: 0, is_least: false }
    }

    /// Counts the rows of a batch of one table.
    pub(super) fn batch(&mut self, table: &str, columns: &Columns, rows: &RecordBatch) {
        for row in 0..rows.num_rows() {
            let Some(time) = columns.time_of(rows, row) else { continue };
            let mut series = self.hasher.build_hasher();
            table.hash(&mut series);
            columns.hash_tags(rows, row, &mut series);
            let series = series.finish();
            let is_new = if self.by_field {
                let fields: Vec<u64> =
                    columns.fields_of(rows, row).map(|name| self.hash(series, time, name)).collect();
                fields.into_iter().filter(|hash| !self.is_new(*hash)).count() == 0
            } else {
                let hash = self.hash(series, time, "");
                self.is_new(hash)
            };
            self.rows += u64::from(!is_new);
        }
    }

    /// Counts a row of a device. Returns whether its time is new.
    pub(super) fn row(&mut self, table: &str, device: &str, micros: i64) -> bool {
        let series = self.hasher.hash_one((table, device));
        let hash = self.hash(series, micros, "");
        let is_new = self.is_new(hash);
        self.rows += u64::from(!is_new);
        is_new
    }

    fn hash(&self, series: u64, micros: i64, field: &str) -> u64 {
        self.hasher.hash_one((series, micros, field))
    }

    fn is_new(&mut self, hash: u64) -> bool {
        if self.seen.len() < IMPORT_SEEN_MAX {
            return self.seen.insert(hash);
        }
        self.is_least = true;
        !self.seen.contains(&hash)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn count(by_field: bool, tags: &[&str], times: &[i64], values: &[Option<i64>]) -> u64 {
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("site", Arc::new(StringArray::from(tags.to_vec())), true),
            ("ts", Arc::new(Int64Array::from(times.to_vec())), true),
            ("a", Arc::new(Int64Array::from(values.to_vec())), true),
            ("b", Arc::new(Int64Array::from_iter(values.iter().map(|it| it.is_none().then_some(1)))), true),
        ];
        let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let columns = Columns::of(rows.schema_ref(), &["site".to_owned()], None).unwrap();
        let mut repeated = DuplicateRows::new(by_field);
        repeated.batch("t", &columns, &rows);
        repeated.rows
    }

    #[test]
    fn rows_of_the_same_tags_and_time_are_counted() {
        let (tags, times) = (["x", "y", "x", "x"], [1, 1, 1, 2]);
        assert_eq!(count(false, &tags, &times, &[Some(1), Some(1), None, Some(1)]), 1);
        assert_eq!(count(true, &tags, &times, &[Some(1), Some(1), None, Some(1)]), 0, "another field");
        assert_eq!(count(true, &tags, &times, &[Some(1), Some(1), Some(2), Some(1)]), 1);
    }
}
