//! Backups: the files of a store at one moment, a directory that takes them, and the restore. docs/format/backup.md.
//!
//! Invariants:
//! 1. The list is the last file of a backup. It gets its name when everything that it names is durable. So the directory has
//!    the list of the last finished backup, or none.
//! 2. A backup never writes to a file that a list names. The next backup in the same directory gives other names to changed
//!    files, and removes the old ones after its own list is durable.
//! 3. A part enters a backup only if every block has the checksum that the manifest has for it.
//! 4. A restored directory has a mark until the whole directory was checked, and its manifest gets its name last.
//! 5. A restore does not trust the maker of a backup: only plain files with known names that the list has, each once, enter
//!    a data directory.

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

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stream of files is invalid or ended early.
    #[error("the files did not arrive whole: {0}")]
    Stream(#[source] io::Error),
    /// The store is damaged. No backup was finished.
    #[error("the store is damaged, so no backup was finished ({} found); the first: {}", .0.len(), describe(.0))]
    Damaged(Vec<Finding>),
    /// The backup does not match its list.
    #[error("{}: {reason}", .path.display())]
    NotABackup {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The list is not the requested one.
    #[error(
        "{}: its list has the SHA-256 {found}, not {wanted}: it is another backup, or somebody has changed it",
        .path.display()
    )]
    AnotherBackup {
        /// The file or directory.
        path: PathBuf,
        /// The digest of the list.
        found: Digest,
        /// The requested digest.
        wanted: Digest,
    },
    /// The directory is not empty.
    #[error("{} {reason}", .path.display())]
    Refused {
        path: PathBuf,
        /// The content of the directory, and the remedy.
        reason: String,
    },
    /// The caller ended it.
    #[error("interrupted; nothing was finished")]
    Interrupted,
}

fn describe(findings: &[Finding]) -> String {
    findings.first().map_or_else(String::new, |first| {
        let at = first.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
        format!("{}{at}: {}. {}", first.path.display(), first.what, first.means)
    })
}
