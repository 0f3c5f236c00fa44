//! The way back: a backup becomes a data directory.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use store::backup::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, is_inside};
use store::{ByteProgress, CheckReport, StoreError};

use super::BackupError;
use super::write::Writer;
use crate::check::check_unlocked;
use crate::disk::{Disk, DiskFile, OpenMode, read_all};

/// Stands in a data directory that was not restored to the end; no server starts on it.
pub const RESTORE_MARKER: &str = "restore.unfinished";
const MANIFEST: &str = "store/manifest";

/// What was restored.
#[derive(Debug, Clone, Default)]
pub struct RestoreReport {
    /// Files written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The backup's own list.
    pub list: BackupList,
    /// What the check of the new directory counted.
    pub check: CheckReport,
}

/// Reads the list of a backup's directory.
///
/// # Errors
/// [`BackupError::NotABackup`] when there is none or it is damaged.
pub fn read_list(disk: &dyn Disk, dir: &Path) -> Result<BackupList, BackupError> {
    find_list(disk, dir)?.ok_or_else(|| BackupError::NotABackup {
        path: dir.to_owned(),
        reason: format!("there is no {BACKUP_LIST}, so this is no backup or one that was not finished"),
    })
}

pub(super) fn find_list(disk: &dyn Disk, dir: &Path) -> Result<Option<BackupList>, BackupError> {
    let path = dir.join(BACKUP_LIST);
    let bytes = match disk.open(&path, OpenMode::Read).and_then(|file| read_all(file.as_ref())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| StoreError::io("read", &path, error))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned());
    let list = text.and_then(|text| BackupList::decode(&text));
    list.map(Some).map_err(|reason| BackupError::NotABackup { path, reason })
}

/// Restores a backup's directory into an empty data directory, and checks the result.
///
/// # Errors
/// The data directory is then marked, so that no server starts on it.
pub fn restore_directory(
    from: &dyn Disk,
    backup: &Path,
    disk: &dyn Disk,
    dir: &Path,
    progress: &mut ByteProgress<'_>,
) -> Result<RestoreReport, BackupError> {
    let list = read_list(from, backup)?;
    let mut restore = Restore::begin(disk, dir, 2 * list.bytes(), progress)?;
    // The manifest makes the others count (invariant 4).
    let (manifest, others): (Vec<_>, Vec<_>) = list.files.iter().partition(|file| file.path == MANIFEST);
    for file in others.into_iter().chain(manifest) {
        if file.path == MANIFEST {
            restore.writer.sync_names()?;
        }
        let path = backup.join(&file.stored);
        let content = from.open(&path, OpenMode::Read);
        let content = content.map_err(|error| StoreError::io("open", &path, error))?;
        let len = content.len().map_err(|error| StoreError::io("read", &path, error))?;
        if len != file.bytes {
            let reason = format!("the backup's file has {len} bytes, its list says {}", file.bytes);
            return Err(BackupError::NotABackup { path, reason });
        }
        let crc = restore.file(&file.path, file.bytes, &mut FileContent::new(content))?;
        if crc != file.crc {
            let reason = "the backup's file does not have the checksum that its list says".to_owned();
            return Err(BackupError::NotABackup { path, reason });
        }
    }
    restore.finish(list)
}

/// Restores a backup that is one tar file. `bytes` is its length, for the progress.
///
/// # Errors
/// As [`restore_directory`].
pub fn restore_stream(
    stream: &mut dyn Read,
    bytes: u64,
    disk: &dyn Disk,
    dir: &Path,
    progress: &mut ByteProgress<'_>,
) -> Result<RestoreReport, BackupError> {
    let mut restore = Restore::begin(disk, dir, 2 * bytes, progress)?;
    let (mut manifest, mut list) = (Vec::new(), None);
    let mut files = Vec::new();
    let broken = |reason: String| BackupError::NotABackup { path: "the stream".into(), reason };
    let mut archive = tar::Archive::new(stream);
    for entry in archive.entries().map_err(BackupError::Stream)? {
        let mut entry = entry.map_err(BackupError::Stream)?;
        let path = entry.path().map_err(BackupError::Stream)?.to_string_lossy().into_owned();
        let bytes = entry.size();
        if !is_inside(&path) {
            return Err(broken(format!("a file is named {path:?}")));
        }
        if path == BACKUP_LIST {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(BackupError::Stream)?;
            list = Some(BackupList::decode(&text).map_err(broken)?);
        } else if path == MANIFEST {
            entry.read_to_end(&mut manifest).map_err(BackupError::Stream)?;
        } else {
            let crc = restore.file(&path, bytes, &mut entry)?;
            files.push(BackupFile { stored: path.clone(), path, bytes, crc });
        }
    }
    let list =
        list.ok_or_else(|| broken(format!("it ends before its {BACKUP_LIST}, so it was not finished")))?;
    let crc = crc32c::crc32c(&manifest);
    files.push(BackupFile {
        path: MANIFEST.into(),
        stored: MANIFEST.into(),
        bytes: manifest.len() as u64,
        crc,
    });
    for wanted in &list.files {
        let found = files.iter().find(|file| file.path == wanted.path);
        if found.is_none_or(|found| (found.bytes, found.crc) != (wanted.bytes, wanted.crc)) {
            return Err(broken(format!("{} is missing or does not have its checksum", wanted.path)));
        }
    }
    restore.writer.sync_names()?;
    restore.file(MANIFEST, manifest.len() as u64, &mut manifest.as_slice())?;
    restore.finish(list)
}

/// A data directory in the making.
struct Restore<'a, 'p> {
    writer: Writer<'a, 'p>,
    report: RestoreReport,
}

impl<'a, 'p> Restore<'a, 'p> {
    fn begin(
        disk: &'a dyn Disk,
        dir: &'a Path,
        total: u64,
        progress: &'a mut ByteProgress<'p>,
    ) -> Result<Self, BackupError> {
        disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
        let names = disk.list(dir).map_err(|error| StoreError::io("list", dir, error))?;
        let inside = disk.list(&dir.join(STORE_DIRECTORY)).unwrap_or_default();
        if let Some(name) = names.iter().chain(&inside).next() {
            let reason = match name == RESTORE_MARKER {
                true => "holds a restore that was not finished; remove the directory and restore again",
                false => "is not empty; name a directory that is, or that is not there yet",
            };
            return Err(BackupError::Refused { path: dir.to_owned(), reason: reason.to_owned() });
        }
        let mut writer = Writer::new(disk, dir, total, progress);
        let text = "Restored from a backup, but not to the end: remove this directory and restore again.\n";
        writer.copy(RESTORE_MARKER, text.len() as u64, None, &mut text.as_bytes())?;
        writer.sync_names()?;
        Ok(Self { writer, report: RestoreReport::default() })
    }

    fn file(&mut self, path: &str, bytes: u64, content: &mut dyn Read) -> Result<u32, BackupError> {
        self.report.files += 1;
        self.report.bytes += bytes;
        Ok(self.writer.copy(path, bytes, None, content)?.crc)
    }

    /// Checks what is there now, and takes the mark away if it is good.
    fn finish(mut self, list: BackupList) -> Result<RestoreReport, BackupError> {
        for name in ["log", "parts"] {
            // An empty one is not in the list.
            self.writer.prepare(&format!("{STORE_DIRECTORY}/{name}/x"))?;
        }
        self.writer.sync_names()?;
        let (done, total) = (self.writer.done, self.writer.total);
        let progress = &mut *self.writer.progress;
        let store = self.writer.dir.join(STORE_DIRECTORY);
        let mut checked = |now: u64, all: u64| progress(done + now, total.max(done + all));
        // Restored segments have no space allocated behind their frames.
        let check = check_unlocked(self.writer.disk, &store, u64::MAX, &mut checked)?;
        if check.interrupted {
            return Err(BackupError::Interrupted);
        }
        if check.is_damaged() {
            return Err(BackupError::Damaged(check.findings));
        }
        self.writer.remove(RESTORE_MARKER)?;
        self.writer.sync_names()?;
        self.report.check = check;
        self.report.list = list;
        Ok(self.report)
    }
}

/// Reads a file from its beginning.
pub(super) struct FileContent {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl FileContent {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for FileContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
