//! The embedded store: log, memtable, parts, manifest, recovery.
//!
//! Synchronous code over a [`Disk`] and a [`Clock`], so that the tests of power cuts run what is shipped. It knows
//! series and rows; it knows no SQL, no protocol and no network. The way of a batch is append/mod.rs, committer/mod.rs; of a
//! read, read/mod.rs. File formats are described in docs/format.

mod append;
mod array_cache;
pub mod backup;
mod catalog;
mod change;
mod check;
mod chunk;
mod codec;
mod committer;
mod compaction;
mod compactor;
mod core;
mod deletion;
pub mod disk;
mod entry;
mod flusher;
#[cfg(test)]
mod format_docs;
mod latest;
mod log;
mod manifest;
mod open;
mod options;
mod part;
mod read;
mod record;
mod report;
mod retention;
mod row;
mod series_file;
mod series_state;
mod store;
mod table;
mod version;

pub use crate::store::LocalStore;
pub use check::{check, check_unlocked};
pub use compaction::Limits as CompactionLimits;
pub use disk::real::RealDisk;
pub use disk::{Disk, DiskFile, DiskLock, LockError, OpenMode};
pub use options::{Clock, Compacted, MonotonicClock, Observer, Options};
pub use report::{RecoveryReport, TornTail};
