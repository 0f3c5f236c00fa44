//! Lists the columns of a table.

use arrow_schema::{Field, Schema};
use store::table::{COLUMN_KIND, COLUMN_NAME};
use store::{Column, Store};

use super::BulkError;
use crate::retention::is_there;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub column: String,
    /// Its kind: `tag`, `ts`, or the type of a field such as `json`.
    pub kind: String,
    /// The tag, or the key of the values.
    pub name: String,
}

/// The columns of a table: tags, then `ts`, then fields in the order in which their keys first appeared.
///
/// # Errors
/// The table does not exist.
pub fn table_columns(store: &dyn Store, table: &str) -> Result<Vec<TableColumn>, BulkError> {
    let schema = match store.snapshot(table)? {
        Some(snapshot) => snapshot.columns().schema(),
        // It was made to keep rows for a time, and has none yet.
        None if is_there(store, table)? => Schema::new(vec![Column::Ts.field()]).into(),
        None => return Err(BulkError::no_table(store, table)),
    };
    let of = |field: &Field, key: &str| field.metadata().get(key).cloned().unwrap_or_default();
    Ok(schema
        .fields()
        .iter()
        .map(|field| TableColumn {
            column: field.name().clone(),
            kind: of(field, COLUMN_KIND),
            name: of(field, COLUMN_NAME),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::{Durability, MemoryStore};

    use super::*;

    #[test]
    fn columns_are_listed_with_what_they_show() {
        let store = MemoryStore::new();
        let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
        let mut batch = Batch::new();
        for value in [ValueRef::I64(1), ValueRef::F64(1.5), ValueRef::String("x")] {
            let mut row = batch.builder();
            row.field("speed", value);
            row.row(series, Timestamp::from_micros(1));
            row.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let found = table_columns(&store, "t").unwrap();
        let found: Vec<_> = found.iter().map(|it| (&*it.column, &*it.kind, &*it.name)).collect();
        let expected = [
            ("device", "tag", "device"),
            ("ts", "ts", "ts"),
            ("speed", "f64", "speed"),
            ("speed:i64", "i64", "speed"),
            ("speed:string", "string", "speed"),
        ];
        assert_eq!(found, expected);
        assert!(table_columns(&store, "u").unwrap_err().to_string().contains("there is no table \"u\""));
        store.set_ttl("u", Some(Duration::from_secs(86_400))).unwrap();
        let found = table_columns(&store, "u").unwrap();
        assert_eq!(found.iter().map(|it| &*it.column).collect::<Vec<_>>(), ["ts"]);
    }
}
