//! The series file: every series in the order of its number. docs/format/series.md.
//!
//! Invariants:
//! 1. The flusher appends and syncs records before the manifest edit that names the new length.
//! 2. Bytes beyond the length that the manifest names are an unfinished write. The open cuts them off.
//! 3. All bytes before that length are valid; otherwise the file is damaged, and the store neither opens nor cuts it.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use store::StoreError;

use crate::catalog::{Catalog, SeriesIndex, TABLE_OF_SERIES_MISSING, TAG_OF_SERIES_MISSING};
use crate::codec::Reader;
use crate::disk::{Disk, DiskFile, Layout, OpenMode};
use crate::entry::Entry;
use crate::record::{FileKind, RecordReader, file_header, put_record};

/// Bytes of entries after which a new record begins.
const RECORD_BYTES: usize = 1024 * 1024;
/// Number of series that are encoded under one lock of the index.
const SLICE: u32 = 1024;
const SERIES_RECORD: u32 = 1;

/// The open file.
pub(crate) struct SeriesFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// The length that the manifest names.
    pub(crate) bytes: u64,
    /// Number of series in the file.
    pub(crate) count: u32,
}

impl SeriesFile {
    /// Creates an empty file. The caller syncs its name.
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

    /// Reads the first `bytes` of the file into the catalog, which already has the tables and tags. Changes no file.
    pub(crate) fn open(
        disk: &dyn Disk,
        layout: &Layout,
        bytes: u64,
        catalog: &mut Catalog,
    ) -> Result<Self, StoreError> {
        let path = layout.series();
        let failed = |error| StoreError::io("open", layout.series(), error);
        let file = disk.open(&path, OpenMode::Write).map_err(failed)?;
        read_series(file.as_ref(), layout, bytes, catalog)?;
        let count = catalog.series.read().len() as u32;
        Ok(Self { file, path, bytes, count })
    }

    /// Cuts off the bytes of an unfinished flush beyond the length that the manifest names (invariant 2).
    pub(crate) fn cut_unfinished(&self) -> Result<(), StoreError> {
        let cut = || match self.file.len()? > self.bytes {
            true => self.file.set_len(self.bytes).and_then(|()| self.file.sync_data()),
            false => Ok(()),
        };
        cut().map_err(|error| StoreError::io("cut", &self.path, error))
    }

    /// Appends the series with numbers below `end`, and returns the new length. The length takes effect with the manifest
    /// edit. The caller may retry after an error.
    pub(crate) fn append(&self, series: &RwLock<SeriesIndex>, end: u32) -> Result<u64, StoreError> {
        let failed = |verb| move |error| StoreError::io(verb, self.path.clone(), error);
        let mut bytes = self.bytes;
        let mut next = self.count;
        let mut record = Vec::new();
        while next < end {
            let payload = encode_series(series, &mut next, end);
            record.clear();
            put_record(&mut record, SERIES_RECORD, &payload);
            self.file.write_at(&record, bytes).map_err(failed("write"))?;
            bytes += record.len() as u64;
        }
        if bytes > self.bytes {
            self.file.sync_data().map_err(failed("sync"))?;
        }
        Ok(bytes)
    }
}

/// Reads the first `bytes` of a series file into the catalog. Changes no file.
pub(crate) fn read_series(
    file: &dyn DiskFile,
    layout: &Layout,
    bytes: u64,
    catalog: &mut Catalog,
) -> Result<(), StoreError> {
    let failed = |error| StoreError::io("read", layout.series(), error);
    let corrupt = |offset, reason: &str| {
        let reason = reason.to_owned();
        StoreError::Corrupt { path: layout.series(), offset, reason }
    };
    let len = file.len().map_err(failed)?;
    if len < bytes {
        let reason = format!("the file ends here, the manifest knows {bytes} bytes of it");
        return Err(corrupt(len, &reason)); // invariant 3
    }
    let records = RecordReader::new(file, FileKind::Series, bytes).map_err(failed)?;
    let mut records = records.map_err(|reason| corrupt(0, &reason))?;
    while records.offset() < bytes {
        let offset = records.offset();
        let Some((_, payload)) = records.next().map_err(failed)? else {
            return Err(corrupt(offset, "a record's checksum does not match")); // invariant 3
        };
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let applied = Entry::read(&mut reader).and_then(|entry| catalog.apply(entry));
            applied.map_err(|malformed| match malformed {
                // The record is intact, so the manifest has lost a definition.
                TABLE_OF_SERIES_MISSING | TAG_OF_SERIES_MISSING => StoreError::Corrupt {
                    path: layout.manifest(),
                    offset: 0,
                    reason: format!("the series file has a {}", malformed.0),
                },
                malformed => corrupt(offset, malformed.0),
            })?;
        }
    }
    Ok(())
}

/// Encodes the series from number `next` on for one record, and sets `next` to the number after them.
fn encode_series(series: &RwLock<SeriesIndex>, next: &mut u32, end: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    while *next < end && payload.len() < RECORD_BYTES {
        let slice = *next..end.min(next.saturating_add(SLICE));
        *next = slice.end;
        let index = series.read();
        for id in slice {
            let table = index.table(id).expect("BUG: ids below the length are known");
            Entry::Series { id, table, tags: index.encoded_tags(id) }.put(&mut payload);
        }
    }
    payload
}
