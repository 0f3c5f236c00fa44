//! Exports whole tables as CSV or Parquet, imports Arrow batches, and deletes.
//!
//! All work on any store: a command uses them on a stopped data directory, and a door on a running server.

mod cells;
mod columns;
mod count;
mod counts;
mod csv;
mod deletion;
mod export;
mod import;
mod listing;
mod local_column;
mod parquet;
mod table_exists;
mod zone;

pub use columns::Columns;
pub use count::count_values;
pub use counts::{ImportCounts, ImportRules};
pub use deletion::{DeleteRequest, Deleted, delete_rows, drop_table, matchers, matchers_of_only};
pub(crate) use deletion::{check_table, delete_of_series};
pub use export::{Export, ExportFormat, ExportRequest, parse_matcher};
pub use import::{Importer, import_parquet};
pub use listing::{TableColumn, drop_key, table_columns};
pub use parquet::{ParquetBounds, ParquetRows};
pub(crate) use table_exists::is_there;
pub use zone::{ClockChange, LocalTimeError, Moment, Zone};

use std::io;

use model::TableName;
use store::{Store, StoreError};

/// An export, import or deletion that failed.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The table does not exist.
    #[error("there is no table {table:?}; {}", named(.known))]
    NoTable {
        table: String,
        /// The existing tables.
        known: Vec<String>,
    },
    /// The table does not have the key.
    #[error("the table {table} has no key {key:?}; {hint}")]
    NoKey {
        table: String,
        /// The name in the request.
        key: String,
        /// A guess at what the caller meant.
        hint: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// The data is invalid.
    #[error("{0}")]
    Data(String),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Most tables that an error names.
const TABLES_NAMED: usize = 10;

impl BulkError {
    /// The error of a missing table, with the existing tables.
    pub(crate) fn no_table(store: &dyn Store, table: &TableName) -> Self {
        match store.tables() {
            Ok(tables) => {
                let neighbours =
                    tables.into_iter().filter(|status| status.table.namespace() == table.namespace());
                let known = neighbours.map(|status| status.table.name().to_owned()).collect();
                Self::NoTable { table: table.name().to_owned(), known }
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
