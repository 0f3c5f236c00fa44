//! Receives a stream of files (`store::backup`) and makes a backup of it in a directory.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::backup::{BACKUP_LIST, BackupFile, BackupList, Digest, STORE_DIRECTORY, is_keys_table};
use store::{ByteProgress, Finding, StoreError};

use super::BackupError;
use super::entries::{Names, check_plain, entries, is_same, read_list as read_sent_list};
use super::nowhere::Nowhere;
use super::pinned::whole_crc;
use super::restore::{MANIFEST, find_list, read_list};
use super::write::Writer;
use crate::disk::{Disk, Layout, OpenMode};
use crate::manifest::{ManifestContent, put_dropped};
use crate::part::PartInfo;
use crate::record::{FileKind, read_records};

/// Marks a directory of a backup before its first list.
const MARKER: &str = "backup.unfinished";

/// The options of a backup.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReceiveOptions {
    /// Whether the backup leaves out damaged parts. Otherwise it fails.
    pub leave_out_damaged: bool,
}

/// The report of a backup.
#[derive(Debug, Clone, Default)]
pub struct BackupReport {
    /// Number of files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the files that an earlier backup had already.
    pub kept_bytes: u64,
    /// Number of parts.
    pub parts: u64,
    /// Number of rows in parts.
    pub rows: u64,
    /// Findings about left-out parts.
    pub left_out: Vec<Finding>,
    /// The SHA-256 of the list.
    pub digest: Digest,
}

/// A directory that takes a backup.
pub struct BackupTarget<'a> {
    disk: &'a dyn Disk,
    dir: PathBuf,
    previous: BackupList,
    base: Option<(PathBuf, BackupList)>,
}

impl<'a> BackupTarget<'a> {
    /// Opens an empty directory, or one with an earlier backup. The backup does not copy parts again that the directory or
    /// `base`, another backup, already has.
    ///
    /// # Errors
    /// [`BackupError::Refused`] when the directory has other files.
    pub fn open(disk: &'a dyn Disk, dir: &Path, base: Option<&Path>) -> Result<Self, BackupError> {
        disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
        let previous = find_list(disk, dir)?.map(|(list, _)| list);
        if previous.is_none() {
            let names = disk.list(dir).map_err(|error| StoreError::io("list", dir, error))?;
            if !names.is_empty() && !names.iter().any(|name| name == MARKER) {
                let reason = format!("holds {:?} and is not a backup; name an empty directory", names[0]);
                return Err(BackupError::Refused { path: dir.to_owned(), reason });
            }
        }
        let base = base.map(|base| Ok::<_, BackupError>((base.to_owned(), read_list(disk, base, None)?)));
        Ok(Self {
            disk,
            dir: dir.to_owned(),
            previous: previous.unwrap_or_default(),
            base: base.transpose()?,
        })
    }

    /// The files that the sender need not send: parts, and tables of the key-value engine.
    pub fn have(&self) -> BackupList {
        let mut have = BackupList::default();
        let base = self.base.iter().map(|(dir, list)| (dir, list));
        for (dir, list) in std::iter::once((&self.dir, &self.previous)).chain(base) {
            let can_be_kept = |file: &&BackupFile| {
                (is_part(&file.path) || is_keys_table(&file.path)) && self.is_whole(dir, file)
            };
            let new = list.files.iter().filter(can_be_kept);
            have.files.extend(new.cloned());
        }
        have.files.sort_by(|a, b| a.path.cmp(&b.path));
        have.files.dedup_by(|a, b| a.path == b.path);
        have
    }

    /// Whether a file of an earlier backup exists with its length. Only a check of that backup compares the checksums.
    fn is_whole(&self, dir: &Path, file: &BackupFile) -> bool {
        if check_plain(self.disk, dir, &file.stored).is_err() {
            return false;
        }
        let len = self.disk.open(&dir.join(&file.stored), OpenMode::Read).and_then(|file| file.len());
        len.is_ok_and(|len| len == file.bytes)
    }

    /// Takes the files of a stream and finishes the backup with its list. `total` is the number of bytes in the stream, for
    /// the progress.
    ///
    /// # Errors
    /// After every error the directory has the list of the last finished backup, or none.
    pub fn receive(
        self,
        stream: &mut dyn Read,
        options: ReceiveOptions,
        total: u64,
        progress: &mut ByteProgress<'_>,
    ) -> Result<BackupReport, BackupError> {
        Ok(self.take(stream, options, total, progress)?.0)
    }

    /// Like [`receive`](Self::receive), with the digest of the list of the sender.
    fn take(
        self,
        stream: &mut dyn Read,
        options: ReceiveOptions,
        total: u64,
        progress: &mut ByteProgress<'_>,
    ) -> Result<(BackupReport, Digest), BackupError> {
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
            names: Names::default(),
            report: BackupReport::default(),
        };
        let mut archive = tar::Archive::new(stream);
        for entry in entries(&mut archive).map_err(BackupError::Stream)? {
            receiver.entry(&mut entry.map_err(BackupError::Stream)?)?;
        }
        receiver.finish()
    }
}

/// Reads a whole stream and compares all files with their checksums, like [`BackupTarget::receive`], but keeps nothing.
///
/// # Errors
/// Those of [`BackupTarget::receive`].
pub fn verify_stream(
    stream: &mut dyn Read,
    total: u64,
    progress: &mut ByteProgress<'_>,
) -> Result<BackupReport, BackupError> {
    let nowhere = BackupTarget::open(&Nowhere, Path::new("the stream"), None)?;
    let (report, digest) = nowhere.take(stream, ReceiveOptions::default(), total, progress)?;
    Ok(BackupReport { digest, ..report })
}

/// Whether a path is the path of a part. A part never changes.
fn is_part(path: &str) -> bool {
    path.starts_with(&format!("{STORE_DIRECTORY}/parts/"))
}

struct Receiver<'t, 'a, 'w, 'p> {
    target: &'t BackupTarget<'a>,
    writer: Writer<'w, 'p>,
    options: ReceiveOptions,
    list: BackupList,
    /// The manifest. The receiver writes it when it knows all parts of the backup.
    manifest: Option<(Vec<u8>, ManifestContent)>,
    /// The parts that were not received yet, by path.
    parts: BTreeMap<String, Arc<PartInfo>>,
    /// The list of the sender, and its digest.
    sent: Option<(BackupList, Digest)>,
    names: Names,
    report: BackupReport,
}

impl Receiver<'_, '_, '_, '_> {
    fn entry(&mut self, entry: &mut tar::Entry<'_, &mut dyn Read>) -> Result<(), BackupError> {
        let path = self.names.next(entry).map_err(|reason| self.broken(reason))?;
        let bytes = entry.size();
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

    /// A name in the backup that no file of the last backup has.
    fn stored(&self, path: &str) -> String {
        let taken = self.target.previous.files.iter().any(|file| file.stored == path);
        if taken { format!("{path}.{}", self.list.generation) } else { path.to_owned() }
    }

    fn file(&mut self, path: String, bytes: u64, content: &mut dyn Read) -> Result<(), BackupError> {
        let stored = self.stored(&path);
        let copied = self.writer.copy(&stored, bytes, None, content)?;
        let (crc, sha256) = (copied.crc, copied.sha256);
        self.list.files.push(BackupFile { path, stored, bytes, crc, sha256 });
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

    /// Checks and writes the series file. Without it a restored store would not open.
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
        let (path, crc, sha256) = (path.to_owned(), copied.crc, copied.sha256);
        self.list.files.push(BackupFile { path, stored, bytes, crc, sha256 });
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
        let (list, text) = read_sent_list(content).map_err(|reason| self.broken(reason))?;
        self.sent = Some((list, Digest::of(text.as_bytes())));
        Ok(())
    }

    /// Takes the missing parts from earlier backups. Then writes the manifest, syncs the names, and writes the list.
    fn finish(mut self) -> Result<(BackupReport, Digest), BackupError> {
        let Some((sent, digest)) = self.sent.take() else {
            let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(BackupError::Stream(error));
        };
        let Some((mut manifest, content)) = self.manifest.take() else {
            return Err(self.broken("no manifest came".to_owned()));
        };
        self.compare_with(&sent, &manifest)?;
        let came = |file: &BackupFile| self.list.find(&file.path).is_some();
        let tables: Vec<BackupFile> =
            sent.files.iter().filter(|file| is_keys_table(&file.path) && !came(file)).cloned().collect();
        for table in tables {
            if !self.keep(&table, None)? {
                return Err(self.broken(format!("{} did not come, and no earlier backup has it", table.path)));
            }
        }
        for (path, part) in std::mem::take(&mut self.parts) {
            let is_it = |out: &Finding| out.path == Path::new(&path);
            if self.keep_part(&path, &part)? {
                // The received part was damaged, but the last backup has it intact.
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
        self.file(MANIFEST.to_owned(), bytes, &mut manifest.as_slice())?;
        Ok((self.commit()?, digest))
    }

    /// Compares the received files with the list of the sender. All files except parts must have arrived unchanged, and no
    /// other file.
    fn compare_with(&self, sent: &BackupList, manifest: &[u8]) -> Result<(), BackupError> {
        if sent.find(MANIFEST).map(|sent| sent.sha256) != Some(Digest::of(manifest)) {
            return Err(self.broken(format!("{MANIFEST} changed on the way")));
        }
        for file in &self.list.files {
            if !sent.find(&file.path).is_some_and(|sent| is_same(file, sent)) {
                return Err(self.broken(format!("{} changed on the way", file.path)));
            }
        }
        let not_compared = |path: &str| is_part(path) || is_keys_table(path) || path == MANIFEST;
        let came = |file: &BackupFile| self.list.find(&file.path).is_some();
        match sent.files.iter().find(|file| !not_compared(&file.path) && !came(file)) {
            Some(missing) => Err(self.broken(format!("{} did not come", missing.path))),
            None => Ok(()),
        }
    }

    /// Takes a part from the last backup or from the base. `false` when neither has it.
    fn keep_part(&mut self, path: &str, part: &PartInfo) -> Result<bool, BackupError> {
        let crc = whole_crc(part);
        let target = self.target;
        let lists = std::iter::once(&target.previous).chain(target.base.iter().map(|(_, list)| list));
        let known = lists
            .filter_map(|list| list.find(path))
            .filter(|file| file.bytes == part.bytes && file.crc == crc)
            .cloned()
            .collect::<Vec<_>>();
        for file in known {
            if self.keep(&file, Some(&part.block_crcs))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a file with these bytes from the last backup or from the base. `false` when neither has it. The blocks have these checksums,
    /// if there are any.
    fn keep(&mut self, wanted: &BackupFile, blocks: Option<&[u32]>) -> Result<bool, BackupError> {
        let same = |file: &&BackupFile| file.path == wanted.path && is_same(file, wanted);
        let target = self.target;
        if let Some(file) = target.previous.files.iter().find(same)
            && target.is_whole(&target.dir, file)
        {
            self.list.files.push(file.clone());
            self.report.kept_bytes += file.bytes;
            return Ok(true);
        }
        let Some((base, list)) = &target.base else { return Ok(false) };
        let known = list.files.iter().find(same).filter(|file| target.is_whole(base, file));
        let Some(known) = known else { return Ok(false) };
        let from = base.join(&known.stored);
        let stored = self.stored(&known.path);
        let to = self.writer.prepare(&stored)?;
        self.writer.remove(&stored)?;
        if target.disk.link(&from, &to).is_err() {
            let Ok(source) = target.disk.open(&from, OpenMode::Read) else { return Ok(false) };
            let mut content = super::restore::FileContent::new(source);
            let copied = self.writer.copy(&stored, known.bytes, blocks, &mut content)?;
            if copied.bad_block.is_some() || known.sha256 != copied.sha256 {
                self.writer.remove(&stored)?;
                return Ok(false);
            }
        }
        self.list.files.push(BackupFile { stored, ..known.clone() });
        self.report.kept_bytes += known.bytes;
        Ok(true)
    }

    fn commit(mut self) -> Result<BackupReport, BackupError> {
        self.writer.sync_names()?; // before the list, because a power cut must not take files that it names
        let text = self.list.encode();
        self.writer.replace(BACKUP_LIST, text.as_bytes())?;
        self.writer.sync_names()?;
        // The backup is finished. Now remove the files that only the last one had.
        let old = self.target.previous.files.iter();
        for file in old.filter(|old| !self.list.files.iter().any(|new| new.stored == old.stored)) {
            self.writer.remove(&file.stored)?;
        }
        self.writer.remove(MARKER)?;
        self.report.digest = Digest::of(text.as_bytes());
        self.report.files = self.list.files.len() as u64;
        self.report.bytes = self.list.bytes();
        Ok(self.report)
    }
}
