//! Lists the columns of a table.

use arrow_schema::{Field, Schema};
use model::TableName;
use store::table::{COLUMN_KIND, COLUMN_NAME};
use store::{Column, Store};

use super::BulkError;
use super::deletion::check_table;
use super::table_exists::is_there;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
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
pub fn table_columns(store: &dyn Store, table: &TableName) -> Result<Vec<TableColumn>, BulkError> {
    let schema = match store.snapshot(table)? {
        Some(snapshot) => snapshot.columns().schema(),
        // The table was created by a time to live and has no rows yet.
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

/// Drops a key of a table, and returns its columns; only returns them when `dry_run`.
///
/// # Errors
/// The table or the key does not exist; the table is the audit table; or the store fails.
pub fn drop_key(
    store: &dyn Store,
    table: &TableName,
    key: &str,
    dry_run: bool,
) -> Result<Vec<TableColumn>, BulkError> {
    check_table(table)?;
    let all = table_columns(store, table)?;
    let is_field = |column: &&TableColumn| !matches!(column.kind.as_str(), "tag" | "ts");
    let columns: Vec<TableColumn> =
        all.iter().filter(is_field).filter(|column| column.name == key).cloned().collect();
    // Another caller can drop the key first.
    if columns.is_empty() || !dry_run && !store.drop_key(table, key)? {
        return Err(BulkError::NoKey {
            table: table.name().to_owned(),
            key: key.to_owned(),
            hint: hint(&all, key),
        });
    }
    Ok(columns)
}

/// What the caller may have meant by a name that is not a key.
fn hint(columns: &[TableColumn], name: &str) -> String {
    match columns.iter().find(|column| column.column == name) {
        Some(column) if column.kind == "tag" => "it is a tag, and tags cannot be dropped".to_owned(),
        Some(column) if column.kind == "ts" => "it is the time of the rows".to_owned(),
        Some(column) => format!("it is a column of the key {:?}: name the key", column.name),
        None => "`tacho table columns` lists the keys".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::conformance::table;
    use store::{Durability, Maintenance, MemoryStore, Writer};

    use super::*;

    #[test]
    fn columns_are_listed_with_key_and_type() {
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
        let refused = |key: &str| drop_key(&store, &table("t"), key, false).unwrap_err().to_string();
        assert_eq!(
            refused("speed:i64"),
            "the table t has no key \"speed:i64\"; it is a column of the key \"speed\": name the key"
        );
        assert_eq!(
            refused("device"),
            "the table t has no key \"device\"; it is a tag, and tags cannot be dropped"
        );
        assert!(refused("spede").ends_with("`tacho table columns` lists the keys"));
        let found = table_columns(&store, &table("t")).unwrap();
        let found: Vec<_> = found.iter().map(|it| (&*it.column, &*it.kind, &*it.name)).collect();
        let expected = [
            ("device", "tag", "device"),
            ("ts", "ts", "ts"),
            ("speed", "f64", "speed"),
            ("speed:i64", "i64", "speed"),
            ("speed:string", "string", "speed"),
        ];
        assert_eq!(found, expected);
        assert!(
            table_columns(&store, &table("u")).unwrap_err().to_string().contains("there is no table \"u\"")
        );
        store.set_ttl(&table("u"), Some(Duration::from_secs(86_400))).unwrap();
        let found = table_columns(&store, &table("u")).unwrap();
        assert_eq!(found.iter().map(|it| &*it.column).collect::<Vec<_>>(), ["ts"]);
    }
}
