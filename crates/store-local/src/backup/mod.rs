//! Backups: which files a store consists of at one moment, a directory that takes them, and the way back.
//! docs/format/backup.md.
//!
//! Invariants:
//! 1. The list is the last file of a backup and is renamed into its place when everything it names is durable. So a
//!    backup has the list of the last one that was finished, or none.
//! 2. No file that a list names is written to. A next backup into the same directory gives other names to files that
//!    have changed, and removes the old ones after its own list is durable.
//! 3. A part enters a backup only if every block has the checksum that the manifest has for it.
//! 4. A restored directory is marked until it was checked as a whole, and its manifest gets its name last.
//! 5. Nobody is trusted who made a backup: only plain files with known names that its list has, each once, enter a
//!    data directory.

mod entries;
mod nowhere;
mod pinned;
mod receive;
mod restore;
mod sums;
mod view;
mod write;

use std::io;
use std::path::PathBuf;

use store::backup::Digest;
use store::{Finding, StoreError};

pub(crate) use pinned::live_files;
pub use pinned::stopped_files;
pub use receive::{BackupReport, BackupTarget, ReceiveOptions, verify_stream};
pub use restore::{
    RESTORE_MARKER, RestoreOptions, RestoreReport, Restored, read_list, restore_directory, restore_stream,
};
pub use sums::compare_with_list;
pub use view::check_backup;

/// Why a backup or a restore was not made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stream of files ended early or is not one.
    #[error("the files did not arrive whole: {0}")]
    Stream(#[source] io::Error),
    /// The store is damaged. Nothing was finished.
    #[error("the store is damaged, so no backup was finished ({} found); the first: {}", .0.len(), describe(.0))]
    Damaged(Vec<Finding>),
    /// The backup itself is not what its list says.
    #[error("{}: {reason}", .path.display())]
    NotABackup {
        /// Which file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The list is not the one that was asked for.
    #[error(
        "{}: its list has the SHA-256 {found}, not {wanted}: it is another backup, or somebody has changed it",
        .path.display()
    )]
    AnotherBackup {
        /// Which file or directory.
        path: PathBuf,
        /// The list's digest.
        found: Digest,
        /// The one that was asked for.
        wanted: Digest,
    },
    /// There is something where nothing may be.
    #[error("{} {reason}", .path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// What is there, and what to do.
        reason: String,
    },
    /// Somebody ended it.
    #[error("interrupted; nothing was finished")]
    Interrupted,
}

fn describe(findings: &[Finding]) -> String {
    findings.first().map_or_else(String::new, |first| {
        let at = first.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
        format!("{}{at}: {}. {}", first.path.display(), first.what, first.means)
    })
}
