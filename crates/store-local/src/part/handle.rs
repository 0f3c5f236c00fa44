//! A part as the versions and the readers share it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::info::{PartInfo, PartLayout};

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
pub(crate) type Rank = (PartLayout, u64);

/// The rank of the memtable.
pub(crate) const NEWEST: Rank = (PartLayout::Wide, u64::MAX);
