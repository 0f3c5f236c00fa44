//! The texts of statements. They are all that the kinds of databases differ in.

use virtual_sensors::DatabaseKind;

use super::table::{Column, ColumnKind, RowKey, Table};

/// A name in quotes.
pub(super) fn quoted(kind: DatabaseKind, name: &str) -> String {
    match kind {
        DatabaseKind::MySql => format!("`{}`", name.replace('`', "``")),
        DatabaseKind::PostgreSql => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The statement that creates a table if the database does not have it.
pub(super) fn create_table(kind: DatabaseKind, table: &Table) -> String {
    let name = quoted(kind, &table.name);
    let columns: String = table
        .columns
        .iter()
        .map(|column| format!(", {} {}", quoted(kind, &column.name), type_name(kind, column.kind)))
        .collect();
    match (kind, table.key) {
        (DatabaseKind::MySql, RowKey::Timed) => format!(
            "CREATE TABLE IF NOT EXISTS {name} (`pk` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, `timed` BIGINT NOT NULL{columns}, \
             UNIQUE KEY `timed` (`timed`)) DEFAULT CHARSET=utf8mb4"
        ),
        (DatabaseKind::MySql, RowKey::Pk) => format!(
            "CREATE TABLE IF NOT EXISTS {name} (`pk` BIGINT NOT NULL PRIMARY KEY, `timed` BIGINT NOT NULL{columns}, KEY `timed` \
             (`timed`)) DEFAULT CHARSET=utf8mb4"
        ),
        (DatabaseKind::PostgreSql, RowKey::Timed) => format!(
            "CREATE TABLE IF NOT EXISTS {name} (\"pk\" BIGSERIAL PRIMARY KEY, \"timed\" BIGINT NOT NULL UNIQUE{columns})"
        ),
        (DatabaseKind::PostgreSql, RowKey::Pk) => format!(
            "CREATE TABLE IF NOT EXISTS {name} (\"pk\" BIGINT PRIMARY KEY, \"timed\" BIGINT NOT NULL{columns})"
        ),
    }
}

/// The names of the columns of a table, in lower case. The parameter is the name of the table.
pub(super) fn column_names(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::MySql => {
            "SELECT LOWER(column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?"
        }
        DatabaseKind::PostgreSql => {
            "SELECT LOWER(column_name)::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1"
        }
    }
}

/// The names of the columns that are a unique key alone. The parameter is the name of the table. An index over an expression has no column.
pub(super) fn unique_columns(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::MySql => {
            "SELECT LOWER(MIN(column_name)) FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? \
             AND non_unique = 0 GROUP BY index_name HAVING COUNT(*) = 1 AND MIN(column_name) IS NOT NULL"
        }
        DatabaseKind::PostgreSql => {
            "SELECT LOWER(a.attname)::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = c.oid \
             AND a.attnum = i.indkey[0] WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = $1 AND i.indisunique \
             AND i.indnkeyatts = 1 AND i.indpred IS NULL"
        }
    }
}

/// Inserts rows; a row whose key is there replaces that one. The parameters are the values row by row (MySQL), or an array for each
/// column (PostgreSQL).
pub(super) fn insert(kind: DatabaseKind, table: &Table, rows: usize) -> String {
    let name = quoted(kind, &table.name);
    let keys: &[&str] = match table.key {
        RowKey::Timed => &["timed"],
        RowKey::Pk => &["pk", "timed"],
    };
    let names: Vec<String> = keys
        .iter()
        .copied()
        .chain(table.columns.iter().map(|column| column.name.as_str()))
        .map(|name| quoted(kind, name))
        .collect();
    let list = names.join(", ");
    // The key replaces itself: without fields a statement must set something.
    let set = |set: &dyn Fn(&String) -> String| names.iter().map(set).collect::<Vec<_>>().join(", ");
    match kind {
        DatabaseKind::MySql => {
            let row = format!("({})", vec!["?"; names.len()].join(", "));
            let values = vec![row; rows].join(", ");
            let set = set(&|name| format!("{name} = VALUES({name})"));
            format!("INSERT INTO {name} ({list}) VALUES {values} ON DUPLICATE KEY UPDATE {set}")
        }
        DatabaseKind::PostgreSql => {
            let keys = keys.iter().map(|_| "bigint");
            let types = keys.chain(table.columns.iter().map(|column| array_type(column.kind)));
            let arrays: Vec<_> =
                types.enumerate().map(|(at, name)| format!("${}::{name}[]", at + 1)).collect();
            let key = quoted(kind, table.key.name());
            let set = set(&|name| format!("{name} = EXCLUDED.{name}"));
            let arrays = arrays.join(", ");
            format!(
                "INSERT INTO {name} ({list}) SELECT * FROM UNNEST({arrays}) ON CONFLICT ({key}) DO UPDATE SET {set}"
            )
        }
    }
}

/// Deletes the rows before a time in milliseconds.
pub(super) fn delete_before(kind: DatabaseKind, table: &Table, timed: i64) -> String {
    let before = match table.key {
        RowKey::Timed => timed,
        RowKey::Pk => timed.saturating_mul(1_000),
    };
    format!("DELETE FROM {} WHERE {} < {before}", quoted(kind, &table.name), quoted(kind, table.key.name()))
}

/// Deletes the rows whose keys are before those of the newest ones. The key has an index.
pub(super) fn keep_newest(kind: DatabaseKind, table: &Table, count: usize) -> String {
    let (name, key) = (quoted(kind, &table.name), quoted(kind, table.key.name()));
    let offset = count.max(1) - 1;
    // MySQL reads no table that it deletes from, but a derived one.
    format!(
        "DELETE FROM {name} WHERE {key} < (SELECT {key} FROM (SELECT {key} FROM {name} ORDER BY {key} DESC LIMIT 1 OFFSET {offset}) AS \
         oldest)"
    )
}

fn type_name(kind: DatabaseKind, column: ColumnKind) -> &'static str {
    match (kind, column) {
        (_, ColumnKind::Integer) => "BIGINT",
        (DatabaseKind::MySql, ColumnKind::Real) => "DOUBLE",
        (DatabaseKind::PostgreSql, ColumnKind::Real) => "DOUBLE PRECISION",
        (DatabaseKind::MySql, ColumnKind::Text) => "LONGTEXT",
        (DatabaseKind::PostgreSql, ColumnKind::Text) => "TEXT",
        (DatabaseKind::MySql, ColumnKind::Bytes) => "LONGBLOB",
        (DatabaseKind::PostgreSql, ColumnKind::Bytes) => "BYTEA",
    }
}

fn array_type(column: ColumnKind) -> &'static str {
    match column {
        ColumnKind::Integer => "bigint",
        ColumnKind::Real => "double precision",
        ColumnKind::Text => "text",
        ColumnKind::Bytes => "bytea",
    }
}

/// The columns that a table lacks.
pub(super) fn missing<'a>(table: &'a Table, found: &[String]) -> Vec<&'a str> {
    let names =
        ["pk", "timed"].into_iter().chain(table.columns.iter().map(|Column { name, .. }| name.as_str()));
    names
        .filter(|name| *name != "pk" || table.key == RowKey::Pk)
        .filter(|name| !found.iter().any(|other| other == name))
        .collect()
}

#[cfg(test)]
mod tests {
    use DatabaseKind::{MySql, PostgreSql};

    use super::*;

    fn table(key: RowKey) -> Table {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let columns = vec![column("mean", ColumnKind::Real), column("zone", ColumnKind::Text)];
        Table { name: "street".to_owned(), key, columns }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted(MySql, "a`b"), "`a``b`");
        assert_eq!(quoted(PostgreSql, "a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn tables_have_the_columns_of_gsn() {
        assert_eq!(
            create_table(MySql, &table(RowKey::Timed)),
            "CREATE TABLE IF NOT EXISTS `street` (`pk` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, `timed` BIGINT NOT NULL, `mean` DOUBLE, \
             `zone` LONGTEXT, UNIQUE KEY `timed` (`timed`)) DEFAULT CHARSET=utf8mb4"
        );
        assert_eq!(
            create_table(PostgreSql, &table(RowKey::Timed)),
            "CREATE TABLE IF NOT EXISTS \"street\" (\"pk\" BIGSERIAL PRIMARY KEY, \"timed\" BIGINT NOT NULL UNIQUE, \"mean\" DOUBLE \
             PRECISION, \"zone\" TEXT)"
        );
        assert!(
            create_table(MySql, &table(RowKey::Pk)).contains("`pk` BIGINT NOT NULL PRIMARY KEY, `timed`")
        );
    }

    #[test]
    fn a_row_that_comes_again_replaces_itself() {
        assert_eq!(
            insert(MySql, &table(RowKey::Timed), 2),
            "INSERT INTO `street` (`timed`, `mean`, `zone`) VALUES (?, ?, ?), (?, ?, ?) ON DUPLICATE KEY UPDATE `timed` = \
             VALUES(`timed`), `mean` = VALUES(`mean`), `zone` = VALUES(`zone`)"
        );
        assert_eq!(
            insert(PostgreSql, &table(RowKey::Pk), 2),
            "INSERT INTO \"street\" (\"pk\", \"timed\", \"mean\", \"zone\") SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::double \
             precision[], $4::text[]) ON CONFLICT (\"pk\") DO UPDATE SET \"pk\" = EXCLUDED.\"pk\", \"timed\" = EXCLUDED.\"timed\", \
             \"mean\" = EXCLUDED.\"mean\", \"zone\" = EXCLUDED.\"zone\""
        );
    }

    #[test]
    fn old_rows_are_deleted_by_time_and_by_count() {
        assert_eq!(delete_before(MySql, &table(RowKey::Timed), 7), "DELETE FROM `street` WHERE `timed` < 7");
        assert_eq!(delete_before(MySql, &table(RowKey::Pk), 7), "DELETE FROM `street` WHERE `pk` < 7000");
        assert_eq!(
            keep_newest(PostgreSql, &table(RowKey::Timed), 10),
            "DELETE FROM \"street\" WHERE \"timed\" < (SELECT \"timed\" FROM (SELECT \"timed\" FROM \"street\" ORDER BY \"timed\" DESC \
             LIMIT 1 OFFSET 9) AS oldest)"
        );
        assert_eq!(
            keep_newest(MySql, &table(RowKey::Pk), 1),
            "DELETE FROM `street` WHERE `pk` < (SELECT `pk` FROM (SELECT `pk` FROM `street` ORDER BY `pk` DESC LIMIT 1 OFFSET 0) AS oldest)"
        );
    }

    #[test]
    fn a_table_of_another_structure_lacks_columns() {
        let found = ["pk", "timed", "mean"].map(str::to_owned);
        assert_eq!(missing(&table(RowKey::Timed), &found), ["zone"]);
        assert_eq!(missing(&table(RowKey::Pk), &found[1..]), ["pk", "zone"]);
    }
}
