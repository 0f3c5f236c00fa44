//! Finds the rows of a batch that the bounds on new columns allow.

use model::Batch;
use store::RefusedRow;

use super::collect::Rows;

/// The rows without the refused fields, and the items that lose values.
pub(crate) fn without(rows: &Rows, refused: &[RefusedRow]) -> (Rows, Vec<u32>) {
    let mut allowed = Rows { batch: Batch::new(), items: Vec::new() };
    let losing = refused.iter().map(|refused| rows.items[refused.row]).collect();
    let mut refused = refused.iter().peekable();
    let mut builder = allowed.batch.builder();
    for ((index, row), item) in rows.batch.rows().enumerate().zip(&rows.items) {
        let loses =
            refused.next_if(|refused| refused.row == index).map_or(&[][..], |refused| &refused.fields);
        let kept = row.fields().enumerate().filter(|(number, _)| !loses.contains(number));
        kept.for_each(|(_, field)| builder.field(field.key, field.value));
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
    use store::StoreError;

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
        let refused = |row, fields| RefusedRow { row, fields, reason: StoreError::Closed };
        let (allowed, losing) = without(&rows, &[refused(0, vec![1]), refused(1, vec![0, 1])]);
        assert_eq!(losing, [3, 4]);
        assert_eq!(allowed.items, [3, 9]);
        let keys = allowed.batch.rows().map(|row| row.fields().map(|field| field.key).collect::<String>());
        assert!(keys.eq(["a", "ac"]));
    }
}
