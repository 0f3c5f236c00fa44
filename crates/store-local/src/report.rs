//! The report of a recovery.

use std::path::{Path, PathBuf};

use store::StoreError;

/// The result of a recovery. The store can be used in every case. `damages` need the attention of an operator, because
/// acknowledged rows are lost or cannot be read.
#[derive(Debug, Default, Clone)]
pub struct RecoveryReport {
    /// Whether the log ends with the mark of a closed store, or is empty.
    pub clean_shutdown: bool,
    /// Number of log segments that were read.
    pub segments: u64,
    /// Number of group commits that were applied.
    pub frames: u64,
    /// Number of rows that were taken from the log into memory.
    pub rows: u64,
    /// Number of parts.
    pub parts: u64,
    /// Number of series.
    pub series: u64,
    /// A write that the end of the process or a power cut interrupted. The store had not acknowledged it.
    pub torn_tail: Option<TornTail>,
    /// Files that an interrupted flush had left. The store has removed them.
    pub orphans: Vec<PathBuf>,
    /// The damages: acknowledged content that the disk does not have any more ([`StoreError::Corrupt`]).
    pub damages: Vec<StoreError>,
}

/// An unfinished write at the end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// The position where the unfinished frame begins.
    pub offset: u64,
    /// Bytes from that position to the end of the file.
    pub bytes: u64,
}

impl RecoveryReport {
    pub(crate) fn damage(&mut self, path: &Path, offset: u64, reason: &str) {
        self.damages.push(StoreError::Corrupt { path: path.to_owned(), offset, reason: reason.to_owned() });
    }
}
