//! Finds the rows of a batch that the bounds on new columns allow.

use std::collections::HashSet;

use model::{Batch, FieldType};

use super::collect::Rows;

/// The rows without the refused keys, and the items that lose values.
pub(crate) fn without(rows: &Rows, refused: &HashSet<(&str, FieldType)>) -> (Rows, Vec<u32>) {
    let mut allowed = Rows { batch: Batch::new(), items: Vec::new() };
    let mut losing = Vec::new();
    let mut builder = allowed.batch.builder();
    for (row, item) in rows.batch.rows().zip(&rows.items) {
        let mut loses = false;
        for field in row.fields() {
            match refused.contains(&(field.key, field.value.field_type())) {
                true => loses = true,
                false => builder.field(field.key, field.value),
            }
        }
        if loses {
            losing.push(*item);
        }
        if builder.open_fields() > 0 {
            builder.row(row.series(), row.ts());
            allowed.items.push(*item);
        }
    }
    builder.finish();
    (allowed, losing)
}

#[cfg(test)]
mod tests {
    use model::{SeriesId, Timestamp, ValueRef};

    use super::*;

    #[test]
    fn a_row_keeps_its_other_keys_and_its_item_is_named() {
        let mut rows = Rows::default();
        for (item, keys) in [(3, ["a", "b"]), (4, ["b", "b"]), (9, ["a", "c"])] {
            let mut row = rows.batch.builder();
            keys.iter().for_each(|key| row.field(key, ValueRef::I64(1)));
            row.row(SeriesId(1), Timestamp::from_micros(i64::from(item)));
            row.finish();
            rows.items.push(item);
        }
        let (allowed, losing) = without(&rows, &HashSet::from([("b", FieldType::I64)]));
        assert_eq!(losing, [3, 4]);
        assert_eq!(allowed.items, [3, 9]);
        let keys = allowed.batch.rows().map(|row| row.fields().map(|field| field.key).collect::<String>());
        assert!(keys.eq(["a", "ac"]));
    }
}
