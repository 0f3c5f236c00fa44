//! The series file: every series in the order of its number. docs/format/series.md.
//!
//! Invariants:
//! 1. Records are appended and synced before the manifest edit that names the new length.
//! 2. What lies beyond the length that the manifest names is an unfinished write; it is cut off when the store opens.
//! 3. Everything before that length is valid, or the file is damaged and the store does not open.

use std::path::PathBuf;
use std::sync::Arc;

use store::StoreError;

use crate::catalog::Catalog;
use crate::codec::Reader;
use crate::disk::{Disk, DiskFile, Layout, OpenMode, read_all};
use crate::entry::Entry;
use crate::record::{FileKind, file_header, put_record, read_records};

/// Bytes of entries after which a new record begins.
const RECORD_BYTES: usize = 1024 * 1024;
const SERIES_RECORD: u32 = 1;

/// The open file.
pub(crate) struct SeriesFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Bytes that the manifest knows.
    pub(crate) bytes: u64,
    /// Series that the file holds.
    pub(crate) count: u32,
}

impl SeriesFile {
    /// Makes an empty file; the caller syncs its name.
    pub(crate) fn create(disk: &dyn Disk, layout: &Layout) -> Result<Self, StoreError> {
        let path = layout.series();
        let header = file_header(FileKind::Series);
        let create = || {
            let file = disk.open(&path, OpenMode::Create)?;
            file.write_at(&header, 0)?;
            file.sync_data()?;
            Ok(file)
        };
        let file = create().map_err(|error| StoreError::io("create", &path, error))?;
        Ok(Self { file, path, bytes: header.len() as u64, count: 0 })
    }

    /// Reads the file into the catalog, whose tables and tags are there already.
    pub(crate) fn open(
        disk: &dyn Disk,
        layout: &Layout,
        bytes: u64,
        catalog: &mut Catalog,
    ) -> Result<Self, StoreError> {
        let path = layout.series();
        let failed = |error| StoreError::io("open", layout.series(), error);
        let file = disk.open(&path, OpenMode::Write).map_err(failed)?;
        let mut content = read_all(file.as_ref()).map_err(failed)?;
        if content.len() as u64 > bytes {
            content.truncate(bytes as usize); // invariant 2
            file.set_len(bytes).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        let records = read_records(&path, FileKind::Series, &content)?;
        let corrupt = |offset, reason: &str| {
            let reason = reason.to_owned();
            StoreError::Corrupt { path: layout.series(), offset, reason }
        };
        if records.end != bytes {
            return Err(corrupt(records.end, "a record's checksum does not match")); // invariant 3
        }
        for (offset, _, payload) in records.records {
            let mut reader = Reader::new(payload);
            while !reader.is_empty() {
                let applied = Entry::read(&mut reader).and_then(|entry| catalog.apply(entry));
                applied.map_err(|malformed| corrupt(offset, malformed.0))?;
            }
        }
        Ok(Self { file, path, bytes, count: catalog.series.len() as u32 })
    }

    /// Appends encoded series entries and returns the new length, which counts once the manifest says so.
    /// May be repeated after an error.
    pub(crate) fn append(&self, entries: &[Vec<u8>]) -> Result<u64, StoreError> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|payload| put_record(&mut bytes, SERIES_RECORD, payload));
        if !bytes.is_empty() {
            let failed = |verb| move |error| StoreError::io(verb, self.path.clone(), error);
            self.file.write_at(&bytes, self.bytes).map_err(failed("write"))?;
            self.file.sync_data().map_err(failed("sync"))?;
        }
        Ok(self.bytes + bytes.len() as u64)
    }
}

/// Encodes the series from number `from` on, in payloads of records.
pub(crate) fn encode_series(catalog: &Catalog, from: u32) -> Vec<Vec<u8>> {
    let mut payloads = vec![Vec::new()];
    for id in from..catalog.series.len() as u32 {
        let table = catalog.series.table(id).expect("BUG: ids below the length are known");
        if payloads.last().is_some_and(|payload| payload.len() >= RECORD_BYTES) {
            payloads.push(Vec::new());
        }
        let payload = payloads.last_mut().expect("BUG: there is one from the beginning");
        Entry::Series { id, table, tags: catalog.series.encoded_tags(id) }.put(payload);
    }
    payloads.retain(|payload| !payload.is_empty());
    payloads
}
