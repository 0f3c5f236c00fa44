//! Parts: immutable Parquet files of one table, sorted by (series, ts), or of many small ones, sorted by (table, series,
//! ts). docs/format/part.md.
//!
//! Invariants:
//! 1. A part is written under a temporary name, synced and renamed before a manifest edit names it; a part without an
//!    edit is an orphan and is removed when the store opens.
//! 2. Each (series, ts) appears once in a part; rows are sorted as the layout says.
//! 3. Every byte that is read from a part was checked against the block checksums in the manifest before it is used.

pub(crate) mod blocks;
pub(crate) mod cells;
pub(crate) mod column;
mod decode;
pub(crate) mod encode;
pub(crate) mod group;
pub(crate) mod make;
pub(crate) mod names;
pub(crate) mod narrow;
mod pages;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod sort;
pub(crate) mod stream;
pub(crate) mod survey;
pub(crate) mod values;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use store::StoreError;

use crate::disk::Disk;
use crate::manifest::PartInfo;
use read::PartReader;
use schema::Layout;

/// A part that the manifest names.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) info: Arc<PartInfo>,
    pub(crate) path: PathBuf,
    /// Compaction could not read it and leaves it alone from then on.
    damaged: AtomicBool,
}

impl Part {
    pub(crate) fn new(info: Arc<PartInfo>, path: PathBuf) -> Self {
        Self { info, path, damaged: AtomicBool::new(false) }
    }

    /// Whether compaction could not read it.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Keeps compaction away from it: what cannot be read must not be rewritten as if it were good.
    pub(crate) fn set_damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// Of two parts that have the same row, the fields of the one with the larger rank are newer.
    ///
    /// A table's rows go to wide parts once it is not narrow any more, so all its wide parts are newer than its narrow
    /// ones. Sequences cannot say so: those of a narrow part are of all its tables, merged ones included.
    pub(crate) fn rank(&self) -> Rank {
        (self.info.layout, self.info.sequence.1)
    }
}

/// What decides between sources that have the same row.
pub(crate) type Rank = (Layout, u64);

/// The rank of the memtable.
pub(crate) const NEWEST: Rank = (Layout::Wide, u64::MAX);

/// Opened parts, the most recently used last.
#[derive(Default)]
pub(crate) struct PartCache {
    readers: Mutex<Vec<(u64, Arc<PartReader>)>>,
}

impl PartCache {
    /// The reader of a part.
    pub(crate) fn reader(&self, disk: &dyn Disk, part: &Part) -> Result<Arc<PartReader>, StoreError> {
        if let Some(reader) = self.touch(part.info.id) {
            return Ok(reader);
        }
        let reader = Arc::new(PartReader::of(disk, part)?);
        let mut readers = self.readers.lock();
        if readers.len() >= model::limits::PART_READERS_MAX {
            readers.remove(0);
        }
        readers.push((part.info.id, reader.clone()));
        Ok(reader)
    }

    /// Closes the reader of a part that is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.readers.lock().retain(|(open, _)| *open != id);
    }

    fn touch(&self, id: u64) -> Option<Arc<PartReader>> {
        let mut readers = self.readers.lock();
        let index = readers.iter().rposition(|(open, _)| *open == id)?;
        let entry = readers.remove(index);
        let reader = entry.1.clone();
        readers.push(entry);
        Some(reader)
    }
}
