//! How far a file was read, as the key-value store keeps it. `docs/format/virtual-sensors.md` describes the bytes.

use serde::{Deserialize, Serialize};

/// How far a file was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FilePosition {
    /// The file, as the descriptor names it.
    pub(super) file: String,
    /// Bytes that were read.
    pub(super) offset: u64,
    /// Lines that were read.
    pub(super) line: u64,
    /// The beginning of the file, by which it is known again.
    pub(super) head: Head,
    /// The time of the last element in milliseconds, and how many elements before it have the same one.
    pub(super) last: Option<(i64, i64)>,
    /// Rows of a file without times have this time in microseconds, or a later one; 0 before the first line.
    pub(super) since_us: i64,
}

/// The first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// Their number.
    pub(super) bytes: usize,
    /// Their XXH3 (64 bits, seed 0).
    pub(super) hash: u64,
}

impl FilePosition {
    /// The beginning of a file.
    pub(super) fn beginning(file: &str) -> Self {
        Self { file: file.to_owned(), offset: 0, line: 0, head: Head::default(), last: None, since_us: 0 }
    }

    /// The beginning of a file that follows this one. Elements of it have no time of an element before.
    pub(super) fn of_new_file(&self, since_us: i64) -> Self {
        Self { last: self.last, since_us, ..Self::beginning(&self.file) }
    }

    /// The place in a record; `None` if it cannot be read. Then the file is read from its beginning.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let place = serde_json::from_slice(bytes);
        place.inspect_err(|error| tracing::warn!(%error, "the place in a CSV file cannot be read; it is read from its beginning")).ok()
    }

    /// The bytes of the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: numbers and text are JSON")
    }
}

impl Head {
    /// The first bytes of a file.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len(), hash: xxhash_rust::xxh3::xxh3_64(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/format/virtual-sensors.md`.
    #[test]
    fn the_record_of_the_documentation_is_read_and_written() {
        let page = include_str!("../../../../../docs/format/virtual-sensors.md");
        let start = page.find("{\"file\"").expect("an example");
        let example = page[start..].lines().next().unwrap();
        let place = FilePosition::decode(example.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(place.encode()).unwrap(), example);
        assert_eq!((place.line, place.last), (2, Some((1_764_272_400_000, 0))));
        assert_eq!(FilePosition::decode(b"{}"), None);
    }
}
