//! Restores a backup to a data directory.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use model::limits::BACKUP_LIST_BYTES_MAX;
use store::backup::{BACKUP_LIST, BackupFile, BackupList, Digest, STORE_DIRECTORY};
use store::{ByteProgress, CheckReport, StoreError};

use super::BackupError;
use super::entries::{self, Names, check_known, check_listed, check_plain};
use super::write::{Writer, unfinished};
use crate::check::check_unlocked;
use crate::disk::{Disk, DiskFile, EntryKind, OpenMode, read_all};

/// The mark in a data directory whose restore is not finished. No server starts on such a directory.
pub const RESTORE_MARKER: &str = "restore.unfinished";
pub(super) const MANIFEST: &str = "store/manifest";
const SERIES: &str = "store/series";

/// The requirements on a backup before a restore.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions<'a> {
    /// The allowed files beside those of the store. The restore refuses others.
    pub beside: &'a [&'a str],
    /// The required ones of these files.
    pub required: &'a [&'a str],
    /// The required SHA-256 of the list.
    pub digest: Option<Digest>,
}

impl RestoreOptions<'_> {
    /// Refuses a list that lacks a required file, names an unknown file, or has another digest than the requested one.
    /// Returns its digest.
    fn check(&self, path: &Path, list: &BackupList, text: &str) -> Result<Digest, BackupError> {
        let found = Digest::of(text.as_bytes());
        check_digest(path, found, self.digest)?;
        let broken = |reason| BackupError::NotABackup { path: path.to_owned(), reason };
        for file in &list.files {
            check_known(&file.path, self.beside).map_err(broken)?;
        }
        match [MANIFEST, SERIES].iter().chain(self.required).find(|path| list.find(path).is_none()) {
            Some(missing) => Err(broken(format!("its {BACKUP_LIST} does not name {missing}"))),
            None => Ok(found),
        }
    }
}

fn check_digest(path: &Path, found: Digest, wanted: Option<Digest>) -> Result<(), BackupError> {
    let Some(wanted) = wanted else { return Ok(()) };
    match found == wanted {
        true => Ok(()),
        false => Err(BackupError::AnotherBackup { path: path.to_owned(), found, wanted }),
    }
}

/// The report of a restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreReport {
    /// Number of files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The list of the backup.
    pub list: BackupList,
    /// The SHA-256 of that list.
    pub digest: Digest,
    /// The report of the check of the new directory.
    pub check: CheckReport,
}

/// Reads the list of a backup in a directory.
///
/// # Errors
/// [`BackupError::NotABackup`] when there is no list or it is damaged; [`BackupError::AnotherBackup`] when its
/// digest is not `wanted`.
pub fn read_list(disk: &dyn Disk, dir: &Path, wanted: Option<Digest>) -> Result<BackupList, BackupError> {
    let (list, text) = read_text(disk, dir)?;
    check_digest(dir, Digest::of(text.as_bytes()), wanted)?;
    Ok(list)
}

fn read_text(disk: &dyn Disk, dir: &Path) -> Result<(BackupList, String), BackupError> {
    find_list(disk, dir)?.ok_or_else(|| BackupError::NotABackup {
        path: dir.to_owned(),
        reason: format!("there is no {BACKUP_LIST}, so this is not a backup or one that was not finished"),
    })
}

pub(super) fn find_list(disk: &dyn Disk, dir: &Path) -> Result<Option<(BackupList, String)>, BackupError> {
    let path = dir.join(BACKUP_LIST);
    let broken = |reason: &str| BackupError::NotABackup { path: path.clone(), reason: reason.to_owned() };
    let failed = |error| StoreError::io("read", &path, error);
    match disk.kind(&path) {
        Ok(EntryKind::File) => {}
        Ok(_) => return Err(broken("it is not a plain file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error).into()),
    }
    let file = disk.open(&path, OpenMode::Read).map_err(failed)?;
    if file.len().map_err(failed)? > BACKUP_LIST_BYTES_MAX {
        return Err(broken("it is longer than a list may be"));
    }
    let bytes = read_all(file.as_ref()).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| broken("it is not text"))?;
    let list = BackupList::decode(&text).map_err(|reason| broken(&reason))?;
    Ok(Some((list, text)))
}

/// Restores a backup in a directory to an empty data directory, and checks the result. The data directory keeps its mark
/// until [`Restored::finish`].
///
/// # Errors
/// After an error the data directory keeps its mark, so that no server starts on it.
pub fn restore_directory<'a>(
    from: &dyn Disk,
    backup: &Path,
    disk: &'a dyn Disk,
    dir: &'a Path,
    options: RestoreOptions<'_>,
    progress: &mut ByteProgress<'_>,
) -> Result<Restored<'a>, BackupError> {
    let (list, text) = read_text(from, backup)?;
    let digest = options.check(backup, &list, &text)?;
    for file in &list.files {
        let path = backup.join(&file.stored);
        check_plain(from, backup, &file.stored).map_err(|reason| BackupError::NotABackup { path, reason })?;
    }
    let mut restore = Restore::begin(disk, dir, list.bytes().saturating_mul(2), progress)?;
    for file in &list.files {
        let path = backup.join(&file.stored);
        let content = from.open(&path, OpenMode::Read);
        let content = content.map_err(|error| StoreError::io("open", &path, error))?;
        let len = content.len().map_err(|error| StoreError::io("read", &path, error))?;
        if len != file.bytes {
            let reason = format!("the backup's file has {len} bytes, its list says {}", file.bytes);
            return Err(BackupError::NotABackup { path, reason });
        }
        let copied = restore.file(&file.path, file.bytes, &mut FileContent::new(content))?;
        if !entries::is_same(&copied, file) {
            let reason = "the backup's file does not have the checksum that its list says".to_owned();
            return Err(BackupError::NotABackup { path, reason });
        }
    }
    restore.finish(list, digest)
}

/// Restores a backup in one tar file. `bytes` is its length, for the progress; `name` is its name in messages.
///
/// # Errors
/// Those of [`restore_directory`].
pub fn restore_stream<'a>(
    stream: &mut dyn Read,
    (name, bytes): (&Path, u64),
    disk: &'a dyn Disk,
    dir: &'a Path,
    options: RestoreOptions<'_>,
    progress: &mut ByteProgress<'_>,
) -> Result<Restored<'a>, BackupError> {
    let mut restore = Restore::begin(disk, dir, bytes.saturating_mul(2), progress)?;
    let (mut names, mut files, mut list) = (Names::default(), Vec::new(), None);
    let broken = |reason: String| BackupError::NotABackup { path: name.to_owned(), reason };
    let mut archive = tar::Archive::new(stream);
    for entry in entries::entries(&mut archive).map_err(BackupError::Stream)? {
        let mut entry = entry.map_err(BackupError::Stream)?;
        let path = names.next(&entry).map_err(broken)?;
        let bytes = entry.size();
        if path == BACKUP_LIST {
            list = Some(entries::read_list(&mut entry).map_err(broken)?);
        } else {
            check_known(&path, options.beside).map_err(broken)?;
            files.push(restore.file(&path, bytes, &mut entry)?);
        }
    }
    let (list, text) =
        list.ok_or_else(|| broken(format!("it ends before its {BACKUP_LIST}, so it was not finished")))?;
    let digest = options.check(name, &list, &text)?;
    check_listed(&list, &files).map_err(broken)?;
    restore.finish(list, digest)
}

/// A restored directory that still has its mark. The caller checks the files that do not belong to the store, and then
/// removes the mark.
#[must_use = "the directory is marked as unfinished until `finish`"]
pub struct Restored<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    report: RestoreReport,
}

impl Restored<'_> {
    /// Removes the mark.
    ///
    /// # Errors
    /// [`BackupError::Store`]. The directory may still have the mark.
    pub fn finish(self) -> Result<RestoreReport, BackupError> {
        let mut nobody = |_: u64, _: u64| std::ops::ControlFlow::Continue(());
        let mut writer = Writer::new(self.disk, self.dir, 0, &mut nobody);
        writer.remove(RESTORE_MARKER)?;
        writer.sync_names()?;
        Ok(self.report)
    }
}

/// A restore in progress.
struct Restore<'a, 'w, 'p> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    writer: Writer<'w, 'p>,
    report: RestoreReport,
}

impl<'a: 'w, 'w, 'p> Restore<'a, 'w, 'p> {
    fn begin(
        disk: &'a dyn Disk,
        dir: &'a Path,
        total: u64,
        progress: &'w mut ByteProgress<'p>,
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
        Ok(Self { disk, dir, writer, report: RestoreReport::default() })
    }

    /// Writes a file. The manifest gets a temporary name until all others are written (invariant 4).
    fn file(&mut self, path: &str, bytes: u64, content: &mut dyn Read) -> Result<BackupFile, BackupError> {
        self.report.files += 1;
        self.report.bytes += bytes;
        let name = if path == MANIFEST { unfinished(path) } else { path.to_owned() };
        let copied = self.writer.copy(&name, bytes, None, content)?;
        let (path, crc, sha256) = (path.to_owned(), copied.crc, copied.sha256);
        Ok(BackupFile { stored: path.clone(), path, bytes, crc, sha256 })
    }

    /// Renames the manifest and checks the directory.
    fn finish(mut self, list: BackupList, digest: Digest) -> Result<Restored<'a>, BackupError> {
        for name in ["log", "parts"] {
            // The list does not have empty directories.
            self.writer.prepare(&format!("{STORE_DIRECTORY}/{name}/x"))?;
        }
        self.writer.sync_names()?;
        self.writer.prepare(MANIFEST)?;
        self.writer.finish(MANIFEST)?;
        self.writer.sync_names()?;
        let (done, total) = (self.writer.done, self.writer.total);
        let progress = &mut *self.writer.progress;
        let store = self.writer.dir.join(STORE_DIRECTORY);
        let mut checked = |now: u64, all: u64| progress(done + now, total.max(done + all));
        // Restored segments have no allocated space after their frames.
        let check = check_unlocked(self.writer.disk, &store, u64::MAX, &mut checked)?;
        if check.interrupted {
            return Err(BackupError::Interrupted);
        }
        if check.is_damaged() {
            return Err(BackupError::Damaged(check.findings));
        }
        let report = RestoreReport { check, list, digest, ..self.report };
        Ok(Restored { disk: self.disk, dir: self.dir, report })
    }
}

/// Reads a file from its beginning to its end.
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
