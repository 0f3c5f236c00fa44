//! Whole tables in and out: exports as CSV or Parquet, imports of Arrow batches.
//!
//! Both work on any store, so a command uses them on a stopped directory and a door on a running server.

mod cells;
mod columns;
mod count;
mod counts;
mod csv;
mod export;
mod import;
mod listing;
mod local_column;
mod parquet;
mod zone;

pub use columns::Columns;
pub use count::count_values;
pub use counts::{ImportCounts, ImportRules};
pub use export::{Export, ExportFormat, ExportRequest, parse_matcher};
pub use import::{Importer, import_parquet};
pub use listing::{TableColumn, drop_key, table_columns};
pub use parquet::{ParquetBounds, ParquetRows};
pub use zone::{ClockChange, LocalTimeError, Moment, Zone};

use std::io;

use store::{Store, StoreError};

/// Why an export or an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such table.
    #[error("there is no table {table:?}; {}", named(.known))]
    NoTable {
        /// Which.
        table: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The table has no such key.
    #[error("the table {table} has no key {key:?}; {hint}")]
    NoKey {
        /// Which table.
        table: String,
        /// The name that is no key.
        key: String,
        /// What the caller may have meant.
        hint: String,
    },
    /// What was asked for is not understood.
    #[error("{0}")]
    Asked(String),
    /// The data is not what it should be.
    #[error("{0}")]
    Data(String),
    /// It cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Tables that an error names at most.
const TABLES_NAMED: usize = 10;

impl BulkError {
    /// That a store has no such table, with those that it has.
    pub(crate) fn no_table(store: &dyn Store, table: &str) -> Self {
        match store.tables() {
            Ok(tables) => {
                let known = tables.into_iter().map(|status| status.table).collect();
                Self::NoTable { table: table.to_owned(), known }
            }
            Err(error) => Self::Store(error),
        }
    }
}

fn named(tables: &[String]) -> String {
    let names: Vec<String> = tables.iter().take(TABLES_NAMED).map(|table| format!("{table:?}")).collect();
    match tables.len() {
        0 => "there are no tables yet: the first row makes one".to_owned(),
        1..=TABLES_NAMED => format!("there are {}", names.join(", ")),
        count => format!("there are {count}, such as {} (`tacho table list`)", names.join(", ")),
    }
}
