//! Whole tables in and out: exports as CSV or Parquet, imports of Arrow batches.
//!
//! Both work on any store, so a command uses them on a stopped directory and a door on a running server.

mod csv;
mod export;
mod import;

pub use export::{Export, ExportFormat, ExportRequest, parse_matcher};
pub use import::{Columns, ImportCounts, Importer, import_parquet};

use std::io;

use store::StoreError;

/// Why an export or an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such table.
    #[error("there is no table {0:?}; `tacho table list` lists the tables")]
    NoTable(String),
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
