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
    /// The compactor could not read the part.
    damaged: AtomicBool,
}

impl Part {
    pub(crate) fn new(info: Arc<PartInfo>, path: PathBuf) -> Self {
        Self { info, path, damaged: AtomicBool::new(false) }
    }

    /// Whether the compactor could not read it.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Excludes the part from merges, because a merge would rewrite a damaged part as if it were intact.
    pub(crate) fn set_damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// The rank of the part. If two parts have the same row, the fields in the part with the larger rank are newer.
    ///
    /// A table that is not narrow any more gets only wide parts, so its wide parts are newer than its narrow ones. Sequences
    /// cannot show this, because a narrow part has the sequences of all its tables.
    pub(crate) fn rank(&self) -> Rank {
        (self.info.layout, self.info.sequence.1)
    }
}

/// Decides between sources that have the same row.
pub(crate) type Rank = (PartLayout, u64);

/// The rank of the memtable.
pub(crate) const NEWEST: Rank = (PartLayout::Wide, u64::MAX);
