//! The operations: tests of PerformanceEvaluation with their options.

use serde::Deserialize;

use super::rows::Dataset;
use crate::limits::{HBASE_BATCH_ROWS_MAX, HBASE_WRITE_BUFFER_BYTES_MAX};

/// PerformanceEvaluation's client buffer, bytes.
const WRITE_BUFFER_BYTES: u64 = 2 * 1024 * 1024;
/// What HBase's client counts for a put with one cell besides row, family, qualifier and value: 352 bytes in 2.6 for the
/// qualifier of one byte (`Put.heapSize`).
const PUT_HEAP_BYTES: u64 = 352;
/// Rows per answer of a scan (`--caching`).
const CACHING: u32 = 30;
/// Rows of a range (`scanRange100`).
const RANGE_ROWS: u64 = 100;
/// Rows of a page (`randomSeekScan`).
const PAGE_ROWS: u32 = 120;

/// The test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TestKind {
    /// `randomWrite`.
    RandomWrite,
    /// `sequentialWrite`.
    SequentialWrite,
    /// `randomRead`.
    RandomRead,
    /// `sequentialRead`.
    SequentialRead,
    /// `scanRange10` to `scanRange10000`.
    ScanRange,
    /// `randomSeekScan`.
    RandomSeekScan,
}

impl TestKind {
    /// Whether it writes rows.
    pub(super) fn is_write(self) -> bool {
        matches!(self, Self::RandomWrite | Self::SequentialWrite)
    }

    /// Whether it takes one row after the other.
    pub(super) fn is_sequential(self) -> bool {
        matches!(self, Self::SequentialWrite | Self::SequentialRead)
    }

    fn is_scan(self) -> bool {
        matches!(self, Self::ScanRange | Self::RandomSeekScan)
    }
}

/// `[[operation]]`. A key that does not belong to its kind is refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    kind: TestKind,
    wal: Option<bool>,
    write_buffer: Option<u32>,
    write_buffer_bytes: Option<u64>,
    multi_get: Option<u32>,
    cache_blocks: Option<bool>,
    caching: Option<u32>,
    range: Option<u64>,
    page: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// The test.
    pub(super) kind: TestKind,
    /// Writes: whether the server writes its log before it answers.
    pub(super) wal: bool,
    /// The rows of one call: puts of a buffer, or gets.
    pub(super) batch: u32,
    /// Whether the batch is a buffer that is full, so that PerformanceEvaluation times each put, most of which only enter
    /// it.
    pub(super) is_buffered: bool,
    /// Reads: whether the server keeps blocks in its cache.
    pub(super) cache_blocks: bool,
    /// Scans: rows per answer.
    pub(super) caching: u32,
    /// `ScanRange`: rows of the range.
    pub(super) range: u64,
    /// `RandomSeekScan`: rows of the page.
    pub(super) page: u32,
}

impl Operation {
    /// Checks the keys of an operation.
    pub(super) fn new(keys: &Keys, data: &Dataset) -> Result<Self, String> {
        let kind = keys.kind;
        let given = [
            ("wal", keys.wal.is_some(), kind.is_write()),
            ("write_buffer", keys.write_buffer.is_some(), kind.is_write()),
            ("write_buffer_bytes", keys.write_buffer_bytes.is_some(), kind.is_write()),
            ("multi_get", keys.multi_get.is_some(), !kind.is_write() && !kind.is_scan()),
            ("cache_blocks", keys.cache_blocks.is_some(), !kind.is_write()),
            ("caching", keys.caching.is_some(), kind.is_scan()),
            ("range", keys.range.is_some(), kind == TestKind::ScanRange),
            ("page", keys.page.is_some(), kind == TestKind::RandomSeekScan),
        ];
        if let Some((key, ..)) = given.iter().find(|(_, is_given, applies)| *is_given && !applies) {
            return Err(format!("`{key}` does not apply to this kind; leave it out"));
        }
        let puts = puts(keys, data)?;
        let operation = Self {
            kind,
            wal: keys.wal.unwrap_or(true),
            batch: if kind.is_write() { puts } else { keys.multi_get.unwrap_or(1) },
            is_buffered: kind.is_write() && keys.write_buffer.is_none(),
            cache_blocks: keys.cache_blocks.unwrap_or(true),
            caching: keys.caching.unwrap_or(CACHING),
            range: keys.range.unwrap_or(RANGE_ROWS),
            page: keys.page.unwrap_or(PAGE_ROWS),
        };
        operation.check()?;
        Ok(operation)
    }

    fn check(&self) -> Result<(), String> {
        let most = u64::from(HBASE_BATCH_ROWS_MAX);
        for (what, rows) in [
            ("the rows of one call (write_buffer, write_buffer_bytes, multi_get)", u64::from(self.batch)),
            ("caching", self.caching.into()),
            ("range", self.range),
            ("page", self.page.into()),
        ] {
            if rows == 0 || rows > most {
                return Err(format!("{what}: {rows}; use 1 to {most}"));
            }
        }
        Ok(())
    }
}

/// The puts of a buffer. HBase's client sends it with the put that makes it larger than its size.
fn puts(keys: &Keys, data: &Dataset) -> Result<u32, String> {
    let bytes = match (keys.write_buffer, keys.write_buffer_bytes) {
        (Some(_), Some(_)) => {
            return Err("write_buffer counts puts, write_buffer_bytes their bytes; leave one out".to_owned());
        }
        (Some(puts), None) => return Ok(puts),
        (None, bytes) => bytes.unwrap_or(WRITE_BUFFER_BYTES),
    };
    if bytes > HBASE_WRITE_BUFFER_BYTES_MAX {
        return Err(format!("write_buffer_bytes = {bytes}; use at most {HBASE_WRITE_BUFFER_BYTES_MAX}"));
    }
    let put = PUT_HEAP_BYTES + (data.row_bytes + data.family.len() + 1 + data.value_bytes) as u64;
    Ok(u32::try_from(bytes / put + 1).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Operation, String> {
        let keys: Keys = toml::from_str(text).map_err(|error| error.to_string())?;
        Operation::new(&keys, &Dataset::default())
    }

    #[test]
    fn a_buffer_holds_as_many_puts_as_in_hbases_client() {
        // Put.heapSize() of 2.6.1 is 1,384 for a row of 26 bytes and a value of 1,000.
        let default = of("kind = 'random_write'").unwrap();
        assert_eq!((default.batch, default.wal, default.is_buffered), (2_097_152 / 1_384 + 1, true, true));
        let two = of("kind = 'random_write'\nwrite_buffer = 2\nwal = false").unwrap();
        assert_eq!((two.batch, two.wal, two.is_buffered), (2, false, false));
        assert_eq!(of("kind = 'random_read'").unwrap().batch, 1);
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        for (text, expected) in [
            ("kind = 'random_read'\nwal = true", "`wal` does not apply"),
            ("kind = 'random_write'\ncaching = 5", "`caching` does not apply"),
            ("kind = 'random_seek_scan'\nrange = 5", "`range` does not apply"),
            ("kind = 'random_write'\nwrite_buffer = 1\nwrite_buffer_bytes = 1", "leave one out"),
            ("kind = 'random_write'\nwrite_buffer = 0", "use 1 to"),
            ("kind = 'scan_range'\nrange = 99999999", "range: 99999999"),
            ("kind = 'append'", "append"),
            ("kind = 'scan_range'\nrows = 5", "rows"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
