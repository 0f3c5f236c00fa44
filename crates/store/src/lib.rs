//! The storage contract: the promises that every backend keeps.
//!
//! The contract knows series, rows and durability. It knows no SQL, no protocol and no backend. [`MemoryStore`] is the
//! reference backend and short enough to be read as the specification. The tests of every backend run the checks of
//! [`conformance`].

#![warn(missing_docs)]

pub mod backup;
mod by_class;
pub mod check;
pub mod conformance;
mod contract;
pub mod definitions;
pub mod deletion;
pub mod durability;
pub mod error;
pub mod files;
pub mod memory;
mod numbers;
pub mod read;
mod rewritten;
mod status;
pub mod table;
mod ticket;

pub use by_class::ByClass;
pub use check::{ByteProgress, CheckReport, Finding, Severity};
pub use contract::{Maintenance, Reader, Store, Writer};
pub use definitions::{DefinitionCounts, DefinitionLimits, Definitions};
pub use deletion::Deletion;
pub use durability::{Durability, Progress, ProgressWatcher, Sequence};
pub use error::{RefusedRow, RefusedRows, StoreError};
pub use files::{StoreFile, StoreFiles};
pub use memory::MemoryStore;
pub use model::{Blame, is_transient};
pub use read::{LatestValue, Order, Scan, ScannedBlock, ScannedRow, ValueColumn};
pub use rewritten::{PartsSize, Rewritten};
pub use status::StoreStatus;
pub use table::{
    BatchReader, Column, FieldColumn, MissingColumn, ReadOrder, SeriesSet, SeriesVisitor, TableColumns,
    TableRead, TableSnapshot, TableStatus, TagColumn, TagMatcher, TagPredicate,
};
pub use ticket::{LateFailures, Outcome, Ticket};

use model::{Batch, limits};

/// Refuses a batch that exceeds the limits of rows or of text. No row is at fault: its sender divides the batch.
pub fn check_batch_size(batch: &Batch) -> Result<(), StoreError> {
    let check = |what, actual: usize, limit: usize| match actual > limit {
        true => Err(StoreError::OverLimit { what, actual: actual as u64, limit: limit as u64 }),
        false => Ok(()),
    };
    check("rows of a batch", batch.len(), limits::BATCH_ROWS_MAX)?;
    check("text bytes of a batch", batch.text_bytes(), limits::BATCH_TEXT_BYTES_MAX)
}
