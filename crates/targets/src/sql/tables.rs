//! sysbench's tables: their options and definitions.

use load::dataset::Distribution;
use serde::{Deserialize, Serialize};

use clients::sql::{Client, Dialect, SqlError};

/// The options of the tables `sbtest1`, `sbtest2`, ...: `[dataset]` of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// The number of tables.
    pub tables: u32,
    /// The rows of each table after a load. Ids are drawn from 1 to this number.
    pub table_size: u32,
    /// Whether the server generates ids; otherwise the client does.
    pub auto_inc: bool,
    /// Uses an index on `id` instead of the primary key.
    pub secondary: bool,
    /// Creates the index `k_N` on `k` after the rows.
    pub create_secondary: bool,
    /// MySQL's storage engine.
    pub engine: String,
    /// Uses `INTEGER UNSIGNED` for id and k, as sysbench 0.5 does (MySQL only).
    pub unsigned: bool,
    /// The distribution of ids and `k`; sysbench's `--rand-type`.
    pub distribution: Distribution,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            engine: "innodb".to_owned(),
            unsigned: false,
            distribution: Distribution::named("special").expect("BUG: the name is known"),
        }
    }
}

/// The largest number of tables: each connection prepares up to nine statements on every one.
const TABLES_MAX: u32 = 10_000;

impl Tables {
    /// Checks the values. The error names the wrong one.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=TABLES_MAX).contains(&self.tables) {
            return Err(format!("`tables` is {}; 1 to {TABLES_MAX} are possible", self.tables));
        }
        if !(1..=i32::MAX as u32).contains(&self.table_size) {
            return Err(format!("`table_size` is {}; 1 to {} rows are possible", self.table_size, i32::MAX));
        }
        if !self.engine.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`engine` is `{}`; it is the name of a storage engine, such as innodb",
                self.engine
            ));
        }
        self.distribution.check().map_err(|what| format!("`distribution`: {what}"))
    }

    /// The statement that creates table `number`.
    pub(crate) fn create(&self, dialect: Dialect, number: u32) -> String {
        let key = if self.secondary { "KEY xid" } else { "PRIMARY KEY" };
        match dialect {
            Dialect::Mysql => {
                let integer = if self.unsigned { "INTEGER UNSIGNED" } else { "INTEGER" };
                let auto = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
                format!(
                    "CREATE TABLE sbtest{number}(id {integer} NOT NULL{auto}, k {integer} DEFAULT '0' NOT NULL, \
                     c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key} (id)) ENGINE = {}",
                    self.engine
                )
            }
            Dialect::Postgres => {
                let id = if self.auto_inc { "SERIAL" } else { "INTEGER NOT NULL" };
                // PostgreSQL has no indexes within a table definition.
                let key = if self.secondary { "" } else { ", PRIMARY KEY (id)" };
                format!(
                    "CREATE TABLE sbtest{number}(id {id}, k INTEGER DEFAULT '0' NOT NULL, \
                     c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key})"
                )
            }
        }
    }

    /// The statements that create the indexes of a filled table.
    pub(crate) fn indexes(&self, dialect: Dialect, number: u32) -> Vec<String> {
        let mut statements = Vec::new();
        if self.secondary && dialect == Dialect::Postgres {
            statements.push(format!("CREATE INDEX xid_{number} ON sbtest{number}(id)"));
        }
        if self.create_secondary {
            statements.push(format!("CREATE INDEX k_{number} ON sbtest{number}(k)"));
        }
        statements
    }
}

/// The largest id of a table; 0 for an empty one. It comes from the index, because a count would read the whole table.
pub(super) fn last_id(client: &mut Client, table: u32) -> Result<i64, SqlError> {
    let answer = client.rows(&format!("SELECT MAX(id) FROM sbtest{table}"))?;
    let last = answer.into_iter().flatten().flatten().next();
    Ok(last.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Whether an error code means that the table does not exist.
pub(super) fn is_missing(code: &str) -> bool {
    matches!(code, "1146" | "42P01")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_checked() {
        let tables: Tables = toml::from_str("tables = 0").unwrap();
        assert!(tables.check().unwrap_err().contains("`tables` is 0"));
        let tables = Tables { engine: "x; DROP".to_owned(), ..Tables::default() };
        assert!(tables.check().is_err());
        Tables::default().check().unwrap();
    }
}
