//! A view of a backup as a store: its files under the names that the store uses.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::backup::{BackupList, STORE_DIRECTORY};
use store::{ByteProgress, CheckReport, Severity, StoreError};

use crate::check::check_unlocked;
use crate::disk::{Disk, DiskFile, DiskLock, EntryKind, LockError, OpenMode};

/// Checks and counts the content of the files of a backup, like a check of the restored directory. The caller compares the
/// files with the checksums of the list. Left-out parts are not findings.
///
/// # Errors
/// [`StoreError::Io`] when the backup cannot be listed.
pub fn check_backup(
    disk: Arc<dyn Disk>,
    backup: &Path,
    list: &BackupList,
    progress: &mut ByteProgress<'_>,
) -> Result<CheckReport, StoreError> {
    let view = View { disk, backup: backup.to_owned(), list: list.clone() };
    let mut report = check_unlocked(&view, &backup.join(STORE_DIRECTORY), u64::MAX, progress)?;
    let path = |finding: &Path| view.path_in_data(finding);
    report.findings.retain(|finding| {
        // Notes are about leftovers of writes. A list has none.
        finding.severity == Severity::Damage
            && !path(&finding.path).is_some_and(|path| list.left_out.contains(&path))
    });
    for finding in &mut report.findings {
        finding.path = view.stored(&finding.path).unwrap_or_else(|| finding.path.clone());
    }
    Ok(report)
}

/// A disk that reads only the files of a list.
struct View {
    disk: Arc<dyn Disk>,
    backup: PathBuf,
    list: BackupList,
}

impl View {
    /// The path in a data directory, from a path that the store uses.
    fn path_in_data(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.backup).ok()?.to_str()?.to_owned())
    }

    /// The path in the backup, from a path that the store uses.
    fn stored(&self, path: &Path) -> Option<PathBuf> {
        let file = self.list.find(&self.path_in_data(path)?)?;
        Some(self.backup.join(&file.stored))
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for View {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        match mode {
            OpenMode::Read => self.disk.open(&self.stored(path).ok_or(ErrorKind::NotFound)?, mode),
            OpenMode::Write | OpenMode::Create => read_only(),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inside = |path: &str| {
            let path = self.backup.join(path);
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            name.filter(|_| path.parent() == Some(dir))
        };
        let mut names: Vec<String> = self.list.files.iter().filter_map(|file| inside(&file.path)).collect();
        names.sort();
        Ok(names)
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        self.disk.kind(&self.stored(path).ok_or(ErrorKind::NotFound)?)
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        read_only()
    }

    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        read_only()
    }

    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _path: &Path) -> Result<Box<dyn DiskLock>, LockError> {
        Err(LockError::Io(ErrorKind::ReadOnlyFilesystem.into()))
    }
}
