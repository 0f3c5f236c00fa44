//! What opening a store found.

use std::path::{Path, PathBuf};

use store::StoreError;

/// The outcome of a recovery. Nothing in it needs an action before the store is used; `damages` need an operator's
/// attention, because acknowledged rows are gone or will be refused when asked for.
#[derive(Debug, Default, Clone)]
pub struct RecoveryReport {
    /// Whether the log ends with the mark of a closed store, or is empty.
    pub clean_shutdown: bool,
    /// Log segments read.
    pub segments: u64,
    /// Group commits applied.
    pub frames: u64,
    /// Rows taken from the log into memory.
    pub rows: u64,
    /// Parts found.
    pub parts: u64,
    /// Series known.
    pub series: u64,
    /// A write that the end of the process or a power cut interrupted. Nobody had been told that it was kept.
    pub torn_tail: Option<TornTail>,
    /// Files that an interrupted flush left behind; they were removed.
    pub orphans: Vec<PathBuf>,
    /// Each place where the disk no longer holds what was acknowledged ([`StoreError::Corrupt`]).
    pub damages: Vec<StoreError>,
}

/// An unfinished write at the end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// Where the unfinished frame begins.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub bytes: u64,
}

impl RecoveryReport {
    pub(crate) fn damage(&mut self, path: &Path, offset: u64, reason: &str) {
        self.damages.push(StoreError::Corrupt { path: path.to_owned(), offset, reason: reason.to_owned() });
    }
}
