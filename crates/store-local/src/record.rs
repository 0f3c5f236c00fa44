//! Checksummed records in append-only files. Manifest and series file consist of them. docs/format/README.md has the byte
//! table.
//!
//! An invalid record at the very end is an unfinished write. An invalid record before a valid one is damage.

use std::io;
use std::path::Path;

use store::StoreError;

use crate::disk::DiskFile;

/// Bytes of the header of a file.
pub(crate) const FILE_HEADER_BYTES: usize = 16;
/// Bytes before the payload of a record.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;
/// The last commit that reads the files of the store and of a backup from before the first release. docs/adr/0026.
const LAST_READING_COMMIT: &str = "ad6acc8b";
const RECORD_MAGIC: [u8; 4] = *b"TREC";

/// The kinds of files that consist of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Manifest,
    Series,
}

impl FileKind {
    const fn magic(self) -> [u8; 8] {
        match self {
            Self::Manifest => *b"TACHOMAN",
            Self::Series => *b"TACHOSER",
        }
    }

    /// The version that the store reads and writes. Versions 1 to 4 of the manifest are from before the first release.
    const fn version(self) -> u32 {
        match self {
            Self::Manifest => 5,
            Self::Series => 1,
        }
    }
}

/// The header of a new file.
pub(crate) fn file_header(kind: FileKind) -> [u8; FILE_HEADER_BYTES] {
    header_of(kind, kind.version())
}

fn header_of(kind: FileKind, version: u32) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&kind.magic());
    header[8..12].copy_from_slice(&version.to_le_bytes());
    let crc = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// What is wrong with a header; `None` for that of a file which this program reads.
fn fault_of_header(kind: FileKind, header: &[u8]) -> Option<String> {
    if header == file_header(kind) {
        return None;
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    Some(match header == header_of(kind, version) {
        true => refused_version(version, kind.version()),
        false => "the header is not that of a file this program reads".to_owned(),
    })
}

/// The reason to refuse a file of another version than the known one.
pub(crate) fn refused_version(found: u32, known: u32) -> String {
    let versions = format!("the file has format version {found}, this program knows version {known}");
    match found < known {
        true => format!(
            "{versions}; a program built from commit {LAST_READING_COMMIT} reads it \
             (docs/format/README.md has the steps)"
        ),
        false => format!("{versions}; use the newer program"),
    }
}

/// Appends a record.
pub(crate) fn put_record(out: &mut Vec<u8>, kind: u32, payload: &[u8]) {
    let length = payload.len() as u32;
    let crc = record_crc(length, kind, payload);
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(payload);
}

fn record_crc(length: u32, kind: u32, payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), &kind.to_le_bytes());
    crc32c::crc32c_append(crc, payload)
}

/// The records of a file.
pub(crate) struct Records<'a> {
    /// Offset, kind and payload.
    pub(crate) records: Vec<(u64, u32, &'a [u8])>,
    /// The end of the last whole record.
    pub(crate) end: u64,
}

/// Reads all records. Damage is an error; an unfinished write at the end is not.
pub(crate) fn read_records<'a>(
    path: &Path,
    kind: FileKind,
    bytes: &'a [u8],
) -> Result<Records<'a>, StoreError> {
    let corrupt = |offset: usize, reason: &str| StoreError::Corrupt {
        path: path.to_owned(),
        offset: offset as u64,
        reason: reason.to_owned(),
    };
    let header =
        bytes.get(..FILE_HEADER_BYTES).ok_or_else(|| corrupt(0, "the file is shorter than its header"))?;
    if let Some(fault) = fault_of_header(kind, header) {
        return Err(corrupt(0, &fault));
    }
    let mut records = Vec::new();
    let mut offset = FILE_HEADER_BYTES;
    while let Some((kind, payload)) = record_at(bytes, offset) {
        records.push((offset as u64, kind, payload));
        offset += RECORD_HEADER_BYTES + payload.len();
    }
    if (offset + 1..bytes.len()).any(|later| record_at(bytes, later).is_some()) {
        return Err(corrupt(offset, "a record's checksum does not match"));
    }
    Ok(Records { records, end: offset as u64 })
}

fn record_at(bytes: &[u8], offset: usize) -> Option<(u32, &[u8])> {
    let record = bytes.get(offset..)?;
    if record.len() < RECORD_HEADER_BYTES || record[..4] != RECORD_MAGIC {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let (crc, length, kind) = (word(4), word(8), word(12));
    let payload = record[RECORD_HEADER_BYTES..].get(..length as usize)?;
    (record_crc(length, kind, payload) == crc).then_some((kind, payload))
}

/// Reads the records of a file one after the other, with a window of the file in memory.
pub(crate) struct RecordReader<'a> {
    file: &'a dyn DiskFile,
    window: Vec<u8>,
    /// The bytes of the window that were read already.
    used: usize,
    /// The position in the file where the window ends.
    window_end: u64,
    end: u64,
}

/// Bytes of one read.
const WINDOW_BYTES: usize = 512 * 1024;

impl<'a> RecordReader<'a> {
    /// Reads the header of a file. The records up to `end` follow.
    pub(crate) fn new(file: &'a dyn DiskFile, kind: FileKind, end: u64) -> io::Result<Result<Self, String>> {
        let mut reader = Self { file, window: Vec::new(), used: 0, window_end: 0, end };
        let has_header = reader.fill(FILE_HEADER_BYTES)?;
        Ok(match has_header && reader.window[..FILE_HEADER_BYTES] == file_header(kind) {
            true => {
                reader.used = FILE_HEADER_BYTES;
                Ok(reader)
            }
            false => Err("the header is not that of a file this program writes".to_owned()),
        })
    }

    /// The position of the next record.
    pub(crate) fn offset(&self) -> u64 {
        self.window_end - (self.window.len() - self.used) as u64
    }

    /// The kind and the payload of the next record; `None` when there is no valid one.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u32, &[u8])>> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(None);
        }
        let at = self.used + 8;
        let length: [u8; 4] = self.window[at..at + 4].try_into().expect("BUG: four bytes are four bytes");
        // `fill` checks the length against the end before it makes room.
        if !self.fill(RECORD_HEADER_BYTES + u32::from_le_bytes(length) as usize)? {
            return Ok(None);
        }
        let Some((kind, payload)) = record_at(&self.window, self.used) else { return Ok(None) };
        self.used += RECORD_HEADER_BYTES + payload.len();
        Ok(Some((kind, payload)))
    }

    /// Makes sure that the window has `bytes` unread bytes. `false` if the file ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        let present = self.window.len() - self.used;
        let left = self.end - self.window_end;
        if present >= bytes || ((bytes - present) as u64) > left {
            return Ok(present >= bytes);
        }
        self.window.drain(..self.used);
        self.used = 0;
        let wanted = (bytes.max(WINDOW_BYTES) - present).min(left as usize);
        self.window.resize(present + wanted, 0);
        let read = self.file.read_at(&mut self.window[present..], self.window_end)?;
        self.window.truncate(present + read);
        self.window_end += read as u64;
        Ok(self.window.len() >= bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut bytes = file_header(FileKind::Manifest).to_vec();
        put_record(&mut bytes, 1, b"one");
        put_record(&mut bytes, 2, b"second");
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(usize, u64), StoreError> {
        read_records(Path::new("manifest"), FileKind::Manifest, bytes)
            .map(|found| (found.records.len(), found.end))
    }

    #[test]
    fn records_come_back_and_a_cut_end_is_dropped() {
        let bytes = file();
        assert_eq!(read(&bytes).unwrap(), (2, bytes.len() as u64));
        for len in FILE_HEADER_BYTES + 19..bytes.len() {
            assert_eq!(read(&bytes[..len]).unwrap(), (1, FILE_HEADER_BYTES as u64 + 19));
        }
        assert!(read(&bytes[..10]).is_err());
    }

    #[test]
    fn a_flipped_byte_before_the_last_record_is_damage() {
        for position in 0..FILE_HEADER_BYTES + 19 {
            let mut bytes = file();
            bytes[position] ^= 1;
            assert!(matches!(read(&bytes), Err(StoreError::Corrupt { .. })), "byte {position}");
        }
    }
}
