//! The manifest: the list of the parts, all definitions except series, and the point from which the log counts.
//! docs/format/manifest.md.
//!
//! Invariants:
//! 1. The store writes an edit only when everything that the edit names is durable: parts under their final names, the
//!    series file, the rows in the log.
//! 2. An edit takes effect as a whole: it is one record under one checksum.
//! 3. The store gives up the files that an edit makes superfluous (log segments, dropped parts) only after the edit is
//!    synced and a mark follows it. So damage to the edit is never mistaken for an unfinished write.
//! 4. Of two parts of a table and of one layout that may have rows of the same time, every row of the part with the larger
//!    last sequence is newer, and so is every field at one (series, ts). Parts of one flush have different days. Parts of
//!    different flushes have disjoint ranges of sequences. A merge takes neighbours in this order, and its output has the
//!    range of all of them, overwritten rows included. The wide parts of a table are newer than its narrow ones: a table
//!    that has a wide part gets no narrow one.
//! 5. A rewrite replaces the file by a rename, with a sync before and after. Until the directory is synced, the file takes
//!    no edit and [`Manifest::mark`] reports no mark: a crash may bring the old file back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::StoreError;

use crate::codec::{Malformed, Reader, put_varint};
use crate::disk::{Disk, DiskFile, Layout, OpenMode, read_all};
use crate::entry::Entry;
use crate::log::recover::Covered;
use crate::part::PartInfo;
use crate::record::{FileKind, file_header, put_record, read_records};
use crate::tombstone::{Tombstone, put_tombstone, read_tombstone};

const EDIT: u32 = 1;
const MARK: u32 = 2;

/// One change of the durable state of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Edit {
    pub(crate) covered: Covered,
    pub(crate) series_bytes: u64,
    /// Encoded table, column and tag entries.
    pub(crate) definitions: Vec<u8>,
    pub(crate) added: Vec<PartInfo>,
    pub(crate) dropped: Vec<u64>,
    pub(crate) deletions: Vec<Arc<Tombstone>>,
    /// The sequences of the deletions that hide nothing any more.
    pub(crate) ended: Vec<u64>,
}

/// The open manifest, and the state that results from its edits.
pub(crate) struct Manifest {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    bytes: u64,
    rewritten_bytes: u64,
    marked: bool,
    /// Whether the directory was synced after the file got its name.
    named: bool,
    pub(crate) state: Edit,
    pub(crate) parts: BTreeMap<u64, Arc<PartInfo>>,
}

impl Manifest {
    /// Creates the manifest of an empty store.
    pub(crate) fn create(disk: &dyn Disk, layout: &Layout, series_bytes: u64) -> Result<Self, StoreError> {
        let state = Edit { series_bytes, ..Edit::default() };
        let mut manifest = Self::replace(disk, layout, state, BTreeMap::new())?;
        manifest.sync_name(disk, layout)?;
        Ok(manifest)
    }

    /// Reads the manifest without a change to it; `None` if there is no manifest.
    pub(crate) fn open(disk: &dyn Disk, layout: &Layout) -> Result<Option<Self>, StoreError> {
        let path = layout.manifest();
        let failed = |error| StoreError::io("open", layout.manifest(), error);
        let file = match disk.open(&path, OpenMode::Write) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let content = read_all(file.as_ref()).map_err(failed)?;
        let ManifestContent { state, parts, end } = ManifestContent::read(&path, &content)?;
        Ok(Some(Self { file, path, bytes: end, rewritten_bytes: 0, marked: true, named: true, state, parts }))
    }

    /// Makes the name of a new file durable (invariant 5).
    pub(crate) fn sync_name(&mut self, disk: &dyn Disk, layout: &Layout) -> Result<(), StoreError> {
        if !self.named {
            disk.sync_dir(&layout.root).map_err(|error| StoreError::io("sync", &layout.root, error))?;
            self.named = true;
        }
        Ok(())
    }

    /// Cuts off an unfinished edit at the end, and makes the other edits durable. The caller has read all files that they
    /// name.
    pub(crate) fn cut_unfinished(&self) -> Result<(), StoreError> {
        let cut = || {
            if self.file.len()? > self.bytes {
                self.file.set_len(self.bytes)?;
            }
            // A killed process may have written an edit without a sync, and the caller is about to remove the files that
            // the edit makes superfluous.
            self.file.sync_data()
        };
        cut().map_err(|error| StoreError::io("cut", &self.path, error))
    }

    /// Makes an edit durable. To be called after [`sync_name`](Self::sync_name). After a transient failure the file has
    /// nothing of the edit, and the caller may retry or give up.
    pub(crate) fn append(&mut self, edit: Edit) -> Result<(), StoreError> {
        assert!(self.named, "BUG: an edit for a manifest whose name may not survive");
        let mut record = Vec::new();
        put_record(&mut record, EDIT, &edit.encode());
        if let Err(error) = self.write(&record) {
            return Err(self.take_back(error));
        }
        self.bytes += record.len() as u64;
        self.apply(edit);
        self.marked = false;
        // If the mark fails, the next edit serves as the mark.
        self.mark().map(drop)
    }

    /// Whether a mark follows the last edit, so that the files that it made superfluous may be given up (invariant 3).
    /// Writes the mark if a full disk has prevented it before.
    pub(crate) fn mark(&mut self) -> Result<bool, StoreError> {
        if self.marked {
            return Ok(self.named);
        }
        let mut mark = Vec::new();
        put_record(&mut mark, MARK, &[]);
        match self.write(&mark) {
            Ok(()) => {
                self.bytes += mark.len() as u64;
                self.marked = true;
            }
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        Ok(self.marked)
    }

    /// Removes the bytes that a failed write may have left. A caller that gives the edit up removes the parts that it
    /// names, so the edit must not come back after a crash. If the removal fails too, the state of the file is unknown.
    fn take_back(&self, error: StoreError) -> StoreError {
        if error.is_sync() {
            return error;
        }
        let undone = self.file.set_len(self.bytes).and_then(|()| self.file.sync_data());
        match undone {
            Ok(()) => error,
            Err(failed) => StoreError::io("sync", &self.path, failed),
        }
    }

    /// Rewrites the manifest if it has grown much since the last rewrite.
    pub(crate) fn rewrite_if_large(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        bytes_max: u64,
    ) -> Result<(), StoreError> {
        if self.bytes > bytes_max.max(2 * self.rewritten_bytes) {
            *self = Self::replace(disk, layout, self.state.clone(), self.parts.clone())?;
        }
        self.sync_name(disk, layout)
    }

    /// Writes the whole state as one edit into a new file, and replaces the old file by it. The new name is not durable
    /// yet.
    fn replace(
        disk: &dyn Disk,
        layout: &Layout,
        state: Edit,
        parts: BTreeMap<u64, Arc<PartInfo>>,
    ) -> Result<Self, StoreError> {
        let path = layout.manifest();
        let bytes = encode_manifest(&whole(&state, &parts));
        let write = || {
            let file = disk.open(&layout.manifest_new(), OpenMode::Create)?;
            file.write_at(&bytes, 0)?;
            file.sync_data()?; // before the name: a crash must find the old file or the whole new one
            disk.rename(&layout.manifest_new(), &path)?;
            Ok(file)
        };
        let file = write().map_err(|error| StoreError::io("rewrite", &path, error))?;
        let bytes = bytes.len() as u64;
        Ok(Self { file, path, bytes, rewritten_bytes: bytes, marked: true, named: false, state, parts })
    }

    fn write(&self, record: &[u8]) -> Result<(), StoreError> {
        let failed = |verb| move |error| StoreError::io(verb, self.path.clone(), error);
        self.file.write_at(record, self.bytes).map_err(failed("write"))?;
        self.file.sync_data().map_err(failed("sync"))
    }

    fn apply(&mut self, edit: Edit) {
        apply(&mut self.state, &mut self.parts, edit);
    }
}

/// The content of a manifest.
pub(crate) struct ManifestContent {
    pub(crate) state: Edit,
    pub(crate) parts: BTreeMap<u64, Arc<PartInfo>>,
    /// Where the last whole record ends.
    pub(crate) end: u64,
}

impl ManifestContent {
    /// Reads all records of a manifest.
    pub(crate) fn read(path: &Path, content: &[u8]) -> Result<Self, StoreError> {
        let records = read_records(path, FileKind::Manifest, content)?;
        let first = records.records.first().map_or((records.end, None), |(at, kind, _)| (*at, Some(*kind)));
        if let (offset, None | Some(MARK)) = first {
            // A manifest gets its name after its first edit is written, so a file without it is damaged, not torn.
            let reason = "its first record is missing".to_owned();
            return Err(StoreError::Corrupt { path: path.to_owned(), offset, reason });
        }
        let mut found = Self { state: Edit::default(), parts: BTreeMap::new(), end: records.end };
        for (offset, kind, payload) in records.records {
            if kind == MARK {
                continue;
            }
            let edit = Edit::read(payload).map_err(|malformed| StoreError::Corrupt {
                path: path.to_owned(),
                offset,
                reason: malformed.0.to_owned(),
            })?;
            apply(&mut found.state, &mut found.parts, edit);
        }
        Ok(found)
    }
}

/// The bytes of a manifest that consists of one edit.
pub(crate) fn encode_manifest(whole: &Edit) -> Vec<u8> {
    let mut bytes = file_header(FileKind::Manifest).to_vec();
    put_record(&mut bytes, EDIT, &whole.encode());
    put_record(&mut bytes, MARK, &[]);
    bytes
}

/// Appends an edit that drops parts, and a mark, to the bytes of a manifest with this state. The manifest may have any
/// version, because an edit without new parts and deletions has the same bytes in all versions.
pub(crate) fn put_dropped(bytes: &mut Vec<u8>, state: &Edit, dropped: Vec<u64>) {
    let edit = Edit { covered: state.covered, series_bytes: state.series_bytes, dropped, ..Edit::default() };
    put_record(bytes, EDIT, &edit.encode());
    put_record(bytes, MARK, &[]);
}

/// The whole state as one edit.
fn whole(state: &Edit, parts: &BTreeMap<u64, Arc<PartInfo>>) -> Edit {
    Edit { added: parts.values().map(|part| (**part).clone()).collect(), ..state.clone() }
}

fn apply(state: &mut Edit, parts: &mut BTreeMap<u64, Arc<PartInfo>>, edit: Edit) {
    state.covered = edit.covered;
    state.series_bytes = edit.series_bytes;
    state.definitions.extend_from_slice(&edit.definitions);
    edit.dropped.iter().for_each(|id| {
        parts.remove(id);
    });
    parts.extend(edit.added.into_iter().map(|part| (part.id, Arc::new(part))));
    state.deletions.extend(edit.deletions);
    state.deletions.retain(|deletion| !edit.ended.contains(&deletion.sequence));
}

impl Edit {
    /// The bytes of the edit.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.covered.frame, self.covered.sequence, self.covered.segment, self.series_bytes] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, self.definitions.len() as u64);
        out.extend_from_slice(&self.definitions);
        put_varint(&mut out, self.added.len() as u64);
        self.added.iter().for_each(|part| part.put(&mut out));
        put_varint(&mut out, self.dropped.len() as u64);
        self.dropped.iter().for_each(|id| put_varint(&mut out, *id));
        if !self.deletions.is_empty() || !self.ended.is_empty() {
            put_varint(&mut out, self.deletions.len() as u64);
            for deletion in &self.deletions {
                put_varint(&mut out, deletion.sequence);
                put_tombstone(&mut out, deletion);
            }
            put_varint(&mut out, self.ended.len() as u64);
            self.ended.iter().for_each(|sequence| put_varint(&mut out, *sequence));
        }
        out
    }

    /// Reads an edit.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(payload);
        let covered =
            Covered { frame: reader.varint()?, sequence: reader.varint()?, segment: reader.varint()? };
        let series_bytes = reader.varint()?;
        let definitions = reader.blob()?.to_vec();
        let added = (0..reader.varint()?).map(|_| PartInfo::read(reader)).collect::<Result<_, _>>()?;
        let dropped = (0..reader.varint()?).map(|_| reader.varint()).collect::<Result<_, _>>()?;
        let (mut deletions, mut ended) = (Vec::new(), Vec::new());
        if !reader.is_empty() {
            for _ in 0..reader.varint()? {
                let sequence = reader.varint()?;
                deletions.push(Arc::new(read_tombstone(sequence, Entry::read(reader)?)?));
            }
            ended = (0..reader.varint()?).map(|_| reader.varint()).collect::<Result<_, _>>()?;
        }
        if !reader.is_empty() {
            return Err(Malformed("bytes after the edit"));
        }
        Ok(Self { covered, series_bytes, definitions, added, dropped, deletions, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::PartLayout;
    use crate::tombstone::tombstone;

    #[test]
    fn an_edit_comes_back() {
        let part = PartInfo {
            id: 7,
            layout: PartLayout::Narrow,
            tables: (3, 300),
            partition: (-86_400_000_000, 0),
            rows: 10,
            bytes: 70_000,
            series: (1, u32::MAX - 1),
            ts: (i64::MIN, -1),
            sequence: (5, u64::MAX),
            applied: 88,
            points: 2,
            raw_bytes: u64::MAX,
            shares: vec![(3, 1), (7, 4), (300, 5)],
            block_crcs: vec![1, u32::MAX],
        };
        assert_eq!((part.rows_of(7), part.rows_of(8)), (4, 0));
        assert!(part.may_have(300) && !part.may_have(299));
        assert_eq!(part.members().collect::<Vec<_>>(), [3, 7, 300]);
        let edit = Edit {
            covered: Covered { frame: 9, sequence: 88, segment: 2 },
            series_bytes: 16,
            definitions: vec![1, 2, 3],
            added: vec![part],
            dropped: vec![3, 4],
            deletions: vec![
                Arc::new(tombstone(70, &[4, 5, 900], (i64::MIN, 5), None)),
                Arc::new(tombstone(77, &[1], (-5, i64::MAX), Some(&[0, 9]))),
            ],
            ended: vec![69],
        };
        assert_eq!(Edit::read(&edit.encode()), Ok(edit.clone()));
        let mut longer = edit.encode();
        longer.push(0);
        assert!(Edit::read(&longer).is_err());
    }

    #[test]
    fn a_manifest_that_does_not_begin_with_an_edit_is_damaged() {
        let whole = encode_manifest(&Edit { series_bytes: 16, ..Edit::default() });
        let mut mark = Vec::new();
        put_record(&mut mark, MARK, &[]);
        let header = file_header(FileKind::Manifest).to_vec();
        let begins_with_mark = [header.as_slice(), &mark].concat();
        let path = Path::new("manifest");
        assert_eq!(ManifestContent::read(path, &whole).unwrap().state.series_bytes, 16);
        for bytes in [&header, &begins_with_mark] {
            let read = ManifestContent::read(path, bytes);
            assert!(
                matches!(&read, Err(StoreError::Corrupt { offset, .. }) if *offset == header.len() as u64),
                "{:?}",
                read.map(|content| content.end)
            );
        }
    }
}
