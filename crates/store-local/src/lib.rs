//! The embedded store: log, memtable, parts, manifest, recovery.
//!
//! The code is synchronous and works on a [`Disk`] and a [`Clock`], so that the tests of power cuts run the shipped code.
//! It knows series and rows; it knows no SQL, no protocol and no network. A batch goes through append/mod.rs and
//! committer/mod.rs, a read through read/mod.rs or table/mod.rs. docs/format describes the files.
//!
//! The floors of the crate, lowest first. A file imports only from its own floor and from lower ones:
//! 1. [`disk`], and the encodings of rows: codec.rs, row.rs, chunk/, entry/.
//! 2. The definitions: catalog/. They are below the formats, because parts and the series file name columns and series by the
//!    catalog's numbers.
//! 3. The formats of the files: record.rs, log/, part/, tombstone/, manifest.rs, series_file.rs.
//! 4. The state: version.rs, compaction/ (which only decides), series_state.rs, latest.rs, workers.rs, append_scratch.rs,
//!    retention_time.rs, and core.rs, which holds all of it.
//! 5. The paths of writes and reads: append/, change.rs, retention/, make_part.rs, read/, table/.
//! 6. The workers (committer/, flusher/, compactor.rs) and the tools (open.rs, check/, backup/).
//! 7. store.rs with the [`LocalStore`].

mod abort;
mod append;
mod append_scratch;
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
mod make_part;
mod manifest;
mod open;
mod options;
mod part;
mod read;
mod record;
mod report;
mod retention;
mod retention_time;
mod row;
mod series_file;
mod series_state;
mod stall;
mod store;
mod table;
mod tombstone;
mod version;
mod workers;

pub use crate::store::LocalStore;
pub use check::{check, check_unlocked};
pub use compaction::Limits as CompactionLimits;
pub use disk::real::RealDisk;
pub use disk::{Disk, DiskFile, DiskLock, LockError, OpenMode};
pub use options::{Clock, Compacted, MonotonicClock, Observer, Options};
pub use report::{RecoveryReport, TornTail};
