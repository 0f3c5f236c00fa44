//! Checksummed records in append-only files: what manifest and series file are made of. docs/format/README.md has the
//! byte table.
//!
//! A bad record at the very end is an unfinished write; one with a valid record after it is damage.

use std::path::Path;

use store::StoreError;

/// Bytes of a file's header.
pub(crate) const FILE_HEADER_BYTES: usize = 16;
/// Bytes before a record's payload.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;
const RECORD_MAGIC: [u8; 4] = *b"TREC";
const FORMAT_VERSION: u32 = 1;

/// Which file a header belongs to.
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
}

/// The header of a new file.
pub(crate) fn file_header(kind: FileKind) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&kind.magic());
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
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

/// The records of a file, and where the last whole one ends.
pub(crate) struct Records<'a> {
    /// Offset, kind and payload.
    pub(crate) records: Vec<(u64, u32, &'a [u8])>,
    pub(crate) end: u64,
}

/// Reads all records; damage that is not an unfinished write at the end is an error.
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
    if *header != file_header(kind) {
        return Err(corrupt(0, "the header is not that of a file this program writes"));
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
