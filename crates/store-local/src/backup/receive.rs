//! Makes a backup in a directory out of a stream of files (`store::backup`).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::backup::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, is_inside};
use store::{ByteProgress, Finding, StoreError};

use super::BackupError;
use super::nowhere::Nowhere;
use super::pinned::whole_crc;
use super::restore::{find_list, read_list};
use super::write::Writer;
use crate::disk::{Disk, Layout, OpenMode};
use crate::manifest::{ManifestContent, PartInfo, put_dropped};
use crate::record::{FileKind, read_records};

/// Marks a directory as one of ours before its first list.
const MARKER: &str = "backup.unfinished";

/// How a backup is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReceiveOptions {
    /// Leaves damaged parts out instead of giving up.
    pub leave_out_damaged: bool,
}

/// What a backup holds.
#[derive(Debug, Clone, Default)]
pub struct BackupReport {
    /// Files of the backup.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of those that an earlier backup had already.
    pub kept_bytes: u64,
    /// Parts.
    pub parts: u64,
    /// Rows in parts.
    pub rows: u64,
    /// Parts that were left out.
    pub left_out: Vec<Finding>,
}

/// A directory that takes a backup.
pub struct BackupTarget<'a> {
    disk: &'a dyn Disk,
    dir: PathBuf,
    previous: BackupList,
    base: Option<(PathBuf, BackupList)>,
}

impl<'a> BackupTarget<'a> {
    /// Takes a directory: an empty one, or one with an earlier backup. Parts that it or `base`, another backup, has are
    /// not copied again.
    ///
    /// # Errors
    /// [`BackupError::Refused`] when something else is in the directory.
    pub fn open(disk: &'a dyn Disk, dir: &Path, base: Option<&Path>) -> Result<Self, BackupError> {
        disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
        let previous = find_list(disk, dir)?;
        if previous.is_none() {
            let names = disk.list(dir).map_err(|error| StoreError::io("list", dir, error))?;
            if !names.is_empty() && !names.iter().any(|name| name == MARKER) {
                let reason = format!("holds {:?} and is no backup; name an empty directory", names[0]);
                return Err(BackupError::Refused { path: dir.to_owned(), reason });
            }
        }
        let base = base.map(|base| Ok::<_, BackupError>((base.to_owned(), read_list(disk, base)?)));
        Ok(Self {
            disk,
            dir: dir.to_owned(),
            previous: previous.unwrap_or_default(),
            base: base.transpose()?,
        })
    }

    /// What need not be sent.
    pub fn have(&self) -> BackupList {
        let mut have = BackupList::default();
        let base = self.base.iter().map(|(dir, list)| (dir, list));
        for (dir, list) in std::iter::once((&self.dir, &self.previous)).chain(base) {
            let new = list.files.iter().filter(|file| is_part(&file.path) && self.is_whole(dir, file));
            have.files.extend(new.cloned());
        }
        have.files.sort_by(|a, b| a.path.cmp(&b.path));
        have.files.dedup_by(|a, b| a.path == b.path);
        have
    }

    fn is_whole(&self, dir: &Path, file: &BackupFile) -> bool {
        let len = self.disk.open(&dir.join(&file.stored), OpenMode::Read).and_then(|file| file.len());
        len.is_ok_and(|len| len == file.bytes)
    }

    /// Takes the files of a stream and finishes the backup with its list. `total` is what the stream will bring, for
    /// the progress.
    ///
    /// # Errors
    /// Whatever the error, the directory has the list of the last finished backup, or none.
    pub fn receive(
        self,
        stream: &mut dyn Read,
        options: ReceiveOptions,
        total: u64,
        progress: &mut ByteProgress<'_>,
    ) -> Result<BackupReport, BackupError> {
        let mut writer = Writer::new(self.disk, &self.dir, total, progress);
        writer.copy(MARKER, 0, None, &mut &[][..])?;
        writer.sync_names()?;
        let generation = if self.previous.files.is_empty() { 0 } else { self.previous.generation + 1 };
        let list = BackupList { generation, ..BackupList::default() };
        let mut receiver = Receiver {
            target: &self,
            writer,
            options,
            list,
            manifest: None,
            parts: BTreeMap::new(),
            sent: None,
            report: BackupReport::default(),
        };
        let mut archive = tar::Archive::new(stream);
        for entry in archive.entries().map_err(BackupError::Stream)? {
            receiver.entry(&mut entry.map_err(BackupError::Stream)?)?;
        }
        receiver.finish()
    }
}

/// Reads a whole stream and compares everything with its checksums, as a directory that takes it would.
///
/// # Errors
/// As [`BackupTarget::receive`].
pub fn verify_stream(
    stream: &mut dyn Read,
    total: u64,
    progress: &mut ByteProgress<'_>,
) -> Result<BackupReport, BackupError> {
    BackupTarget::open(&Nowhere, Path::new("the stream"), None)?.receive(
        stream,
        ReceiveOptions::default(),
        total,
        progress,
    )
}

/// Whether a path is that of a part, which never changes.
fn is_part(path: &str) -> bool {
    path.starts_with(&format!("{STORE_DIRECTORY}/parts/"))
}

struct Receiver<'t, 'a, 'w, 'p> {
    target: &'t BackupTarget<'a>,
    writer: Writer<'w, 'p>,
    options: ReceiveOptions,
    list: BackupList,
    /// The manifest's bytes; written when it is known which parts there are.
    manifest: Option<(Vec<u8>, ManifestContent)>,
    /// Parts that are still to come, by path.
    parts: BTreeMap<String, Arc<PartInfo>>,
    /// The sender's list.
    sent: Option<BackupList>,
    report: BackupReport,
}

impl Receiver<'_, '_, '_, '_> {
    fn entry(&mut self, entry: &mut tar::Entry<'_, &mut dyn Read>) -> Result<(), BackupError> {
        let path = entry.path().map_err(BackupError::Stream)?.to_string_lossy().into_owned();
        let bytes = entry.size();
        if !is_inside(&path) {
            return Err(self.broken(format!("a file is named {path:?}")));
        }
        let store = format!("{STORE_DIRECTORY}/");
        match path.strip_prefix(&store) {
            Some("manifest") => return self.take_manifest(entry),
            Some("series") => return self.series(&path, entry),
            Some(_) if is_part(&path) => return self.part(&path, bytes, entry),
            _ if path == BACKUP_LIST => return self.take_list(entry),
            _ => {}
        }
        self.file(path, bytes, entry)
    }

    fn broken(&self, reason: String) -> BackupError {
        BackupError::NotABackup { path: self.target.dir.clone(), reason }
    }

    /// A name that no file of the last backup has.
    fn stored(&self, path: &str) -> String {
        let taken = self.target.previous.files.iter().any(|file| file.stored == path);
        if taken { format!("{path}.{}", self.list.generation) } else { path.to_owned() }
    }

    fn file(&mut self, path: String, bytes: u64, content: &mut dyn Read) -> Result<(), BackupError> {
        let stored = self.stored(&path);
        let copied = self.writer.copy(&stored, bytes, None, content)?;
        self.list.files.push(BackupFile { path, stored, bytes, crc: copied.crc });
        Ok(())
    }

    fn take_manifest(&mut self, content: &mut dyn Read) -> Result<(), BackupError> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(BackupError::Stream)?;
        let read = ManifestContent::read(Path::new("manifest"), &bytes)?;
        let layout = Layout::new(Path::new(STORE_DIRECTORY));
        for part in read.parts.values() {
            self.parts.insert(layout.part(part.id).to_string_lossy().into_owned(), part.clone());
        }
        self.report.parts = read.parts.len() as u64;
        self.report.rows = read.parts.values().map(|part| part.rows).sum();
        self.manifest = Some((bytes, read));
        Ok(())
    }

    /// The series file is checked before it is kept: without it nothing of the backup opens.
    fn series(&mut self, path: &str, content: &mut dyn Read) -> Result<(), BackupError> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(BackupError::Stream)?;
        let records = read_records(Path::new(path), FileKind::Series, &bytes)?;
        if records.end != bytes.len() as u64 {
            let reason = "a record's checksum does not match".to_owned();
            return Err(StoreError::Corrupt { path: path.into(), offset: records.end, reason }.into());
        }
        self.file(path.to_owned(), bytes.len() as u64, &mut bytes.as_slice())
    }

    fn part(&mut self, path: &str, bytes: u64, content: &mut dyn Read) -> Result<(), BackupError> {
        let Some(part) = self.parts.get(path).cloned().filter(|part| part.bytes == bytes) else {
            return Err(self.broken(format!("{path} came, but the manifest does not name it so")));
        };
        let stored = self.stored(path);
        let copied = self.writer.copy(&stored, bytes, Some(&part.block_crcs), content)?;
        if let Some(offset) = copied.bad_block {
            self.writer.remove(&stored)?;
            return self.damaged(path, Some(offset), "the checksum of a block does not match", &part);
        }
        self.parts.remove(path);
        self.list.files.push(BackupFile { path: path.to_owned(), stored, bytes, crc: copied.crc });
        Ok(())
    }

    fn damaged(
        &mut self,
        path: &str,
        offset: Option<u64>,
        what: &str,
        part: &PartInfo,
    ) -> Result<(), BackupError> {
        let means = format!("It holds {} rows that were acknowledged.", part.rows);
        let action = "`tacho check` says which rows these are; leave the part out to save everything else.";
        let finding = Finding::damage(path, offset, what).with(means, action).of(None, Some(part.rows));
        if !self.options.leave_out_damaged {
            return Err(BackupError::Damaged(vec![finding]));
        }
        self.report.left_out.push(finding);
        Ok(())
    }

    fn take_list(&mut self, content: &mut dyn Read) -> Result<(), BackupError> {
        let mut text = String::new();
        content.read_to_string(&mut text).map_err(BackupError::Stream)?;
        self.sent = Some(BackupList::decode(&text).map_err(|reason| self.broken(reason))?);
        Ok(())
    }

    /// Parts that did not come must be there already; then the manifest, the names, the list.
    fn finish(mut self) -> Result<BackupReport, BackupError> {
        let Some(sent) = self.sent.take() else {
            let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(BackupError::Stream(error));
        };
        let Some((mut manifest, content)) = self.manifest.take() else {
            return Err(self.broken("no manifest came".to_owned()));
        };
        let received = self.list.files.iter().filter(|file| !is_part(&file.path));
        for file in received {
            if sent.find(&file.path).map(|sent| sent.crc) != Some(file.crc) {
                return Err(self.broken(format!("{} changed on the way", file.path)));
            }
        }
        for (path, part) in std::mem::take(&mut self.parts) {
            let is_it = |out: &Finding| out.path == Path::new(&path);
            if self.keep(&path, &part)? {
                // What came was damaged, but the backup before has it as it was written.
                self.report.left_out.retain(|out| !is_it(out));
            } else if !self.report.left_out.iter().any(is_it) {
                self.damaged(&path, None, "the file is missing", &part)?;
            }
        }
        let left_out: Vec<String> =
            self.report.left_out.iter().map(|out| out.path.to_string_lossy().into_owned()).collect();
        if !left_out.is_empty() {
            let layout = Layout::new(Path::new(STORE_DIRECTORY));
            let gone = content
                .parts
                .values()
                .filter(|part| left_out.iter().any(|path| Path::new(path) == layout.part(part.id)));
            put_dropped(&mut manifest, &content.state, gone.map(|part| part.id).collect());
            self.report.rows -= self.report.left_out.iter().filter_map(|out| out.rows).sum::<u64>();
            self.report.parts -= left_out.len() as u64;
        }
        self.list.left_out = left_out;
        self.list.created_us = sent.created_us;
        let bytes = manifest.len() as u64;
        self.file(format!("{STORE_DIRECTORY}/manifest"), bytes, &mut manifest.as_slice())?;
        self.commit()
    }

    /// Takes a part from the last backup or from the base.
    fn keep(&mut self, path: &str, part: &PartInfo) -> Result<bool, BackupError> {
        let crc = whole_crc(part);
        let same = |file: &&BackupFile| file.path == path && file.bytes == part.bytes && file.crc == crc;
        let target = self.target;
        if let Some(file) = target.previous.files.iter().find(same)
            && target.is_whole(&target.dir, file)
        {
            self.list.files.push(file.clone());
            self.report.kept_bytes += file.bytes;
            return Ok(true);
        }
        let Some((base, list)) = &target.base else { return Ok(false) };
        let Some(file) = list.files.iter().find(same) else { return Ok(false) };
        let from = base.join(&file.stored);
        let stored = self.stored(path);
        let to = self.writer.prepare(&stored)?;
        self.writer.remove(&stored)?;
        if target.disk.link(&from, &to).is_err() {
            let Ok(source) = target.disk.open(&from, OpenMode::Read) else { return Ok(false) };
            let mut content = super::restore::FileContent::new(source);
            if self
                .writer
                .copy(&stored, part.bytes, Some(&part.block_crcs), &mut content)?
                .bad_block
                .is_some()
            {
                self.writer.remove(&stored)?;
                return Ok(false);
            }
        }
        self.list.files.push(BackupFile { path: path.to_owned(), stored, bytes: part.bytes, crc });
        self.report.kept_bytes += part.bytes;
        Ok(true)
    }

    fn commit(mut self) -> Result<BackupReport, BackupError> {
        self.writer.sync_names()?; // before the list: it must not name what a power cut takes away
        self.writer.replace(BACKUP_LIST, self.list.encode().as_bytes())?;
        self.writer.sync_names()?;
        // The backup is finished. What the one before had and this one has not is removed.
        let old = self.target.previous.files.iter();
        for file in old.filter(|old| !self.list.files.iter().any(|new| new.stored == old.stored)) {
            self.writer.remove(&file.stored)?;
        }
        self.writer.remove(MARKER)?;
        self.report.files = self.list.files.len() as u64;
        self.report.bytes = self.list.bytes();
        Ok(self.report)
    }
}
