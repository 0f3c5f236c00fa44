//! The settings of a store. Defaults are the limits of `model::limits`; tests use tiny ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::limits;
use store::StoreError;

use crate::compaction::Limits;
use crate::part::schema::text_block_bytes;

/// Settings of [`LocalStore::open`](crate::LocalStore::open).
#[derive(Clone)]
pub struct Options {
    /// Size of a log segment file.
    pub segment_bytes: u64,
    /// Whether the store keeps a segment of zeros ready, so that a sync need not wait for the file system to allocate
    /// blocks.
    pub preallocate: bool,
    /// Log bytes that are not durable yet, above which `append` answers busy.
    pub log_pending_bytes_max: usize,
    /// Log bytes above which a flush begins, even if the memtable is small.
    pub log_flush_bytes: u64,
    /// Memtable bytes above which `append` answers busy.
    pub memtable_bytes_max: usize,
    /// Memtable bytes at which a flush to parts begins.
    pub memtable_flush_bytes: usize,
    /// Number of rows after which the store freezes the open chunk of a table. At most 65,536.
    pub chunk_rows: usize,
    /// Number of series whose latest values stay in memory.
    pub latest_series_max: usize,
    /// Bytes that the latest values may take in memory.
    pub latest_bytes_max: usize,
    /// Bytes that decoded columns of parts and chunks may take in memory.
    pub array_cache_bytes_max: usize,
    /// The largest number of columns of a table, tag columns included.
    pub columns_per_table_max: usize,
    /// The largest number of tables.
    pub tables_max: usize,
    /// The largest number of parts that one flush writes for one table. Beyond it neighbouring days share a part.
    pub flush_parts_per_table_max: usize,
    /// Number of rows of a row group in a part.
    pub row_group_rows: usize,
    /// Bytes of values at which a row group in a part ends, even if it has few rows.
    pub row_group_bytes: usize,
    /// Bytes that a merge decodes at once from each input.
    pub merge_window_bytes: usize,
    /// The largest number of rows that a read of one series decodes at once.
    pub series_batch_rows: usize,
    /// Number of rows of a data page in a part. A read of one series decodes at least one page.
    pub page_rows: usize,
    /// Whether tables whose only field is one f64 share parts. A table that has parts or a time to live of its own does
    /// not share. The setting may change from one open to the next.
    pub narrow_parts: bool,
    /// The level of zstd for parts, 1 to 22. A higher level is smaller and slower.
    pub zstd_level: i32,
    /// The store rewrites a manifest that is larger than this and larger than twice its last rewrite.
    pub manifest_rewrite_bytes: u64,
    /// The shortest interval between the beginnings of two syncs, unless many rows or bytes are pending. The interval is twice
    /// as long while that gathers more rows.
    pub commit_interval_us: u64,
    /// The longest time that a batch of class `memory` waits for its write.
    pub lazy_write_us: u64,
    /// The pause before the store retries a write that failed for lack of space, descriptors or memory.
    pub stalled_retry_us: u64,
    /// Pending log bytes at which a commit begins at once.
    pub commit_eager_bytes: usize,
    /// How long the store keeps the rows of a table without a setting of its own; forever when `None`.
    pub ttl_default: Option<Duration>,
    /// Whether the compactor merges parts by itself. Otherwise it merges only on
    /// [`LocalStore::compact`](crate::LocalStore::compact), and flushes do not wait for merges.
    pub compact: bool,
    /// The settings of compaction.
    pub compaction: Limits,
    /// Gets reports about syncs, flushes and merges.
    pub observer: Option<Arc<dyn Observer>>,
    /// Measures pauses. The store does not use the wall clock.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// Bytes of texts that a read decodes at once.
    pub(crate) fn text_block_bytes(&self) -> usize {
        text_block_bytes(self.row_group_bytes)
    }

    /// Bytes of the decoded blocks after which a batch of rows ends.
    pub(crate) fn read_batch_bytes(&self) -> usize {
        self.text_block_bytes() * limits::READ_BLOCKS_PER_BATCH
    }

    /// Bytes of decoded columns that the sources of a read keep from one batch to the next.
    pub(crate) fn read_kept_bytes(&self) -> usize {
        self.read_batch_bytes() * limits::READ_BATCHES_KEPT
    }

    /// Bytes of a chunk from which on a read decodes it in pieces. The cache would keep few chunks of this size.
    pub(crate) fn chunk_whole_bytes(&self) -> usize {
        (self.array_cache_bytes_max / limits::CHUNK_PIECES_CACHE_SHARE).max(self.text_block_bytes())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: limits::LOG_SEGMENT_BYTES,
            preallocate: true,
            log_pending_bytes_max: limits::LOG_PENDING_BYTES_MAX,
            log_flush_bytes: limits::LOG_FLUSH_BYTES,
            memtable_bytes_max: limits::MEMTABLE_BYTES_MAX,
            memtable_flush_bytes: limits::MEMTABLE_FLUSH_BYTES,
            chunk_rows: limits::CHUNK_ROWS,
            latest_series_max: limits::LATEST_SERIES_MAX,
            latest_bytes_max: limits::LATEST_BYTES_MAX,
            array_cache_bytes_max: limits::ARRAY_CACHE_BYTES_MAX,
            columns_per_table_max: limits::COLUMNS_PER_TABLE_MAX,
            tables_max: limits::TABLES_MAX,
            flush_parts_per_table_max: limits::FLUSH_PARTS_PER_TABLE_MAX,
            row_group_rows: limits::PART_ROW_GROUP_ROWS,
            row_group_bytes: limits::PART_ROW_GROUP_BYTES,
            merge_window_bytes: limits::PART_WINDOW_BYTES,
            series_batch_rows: limits::PART_PAGE_ROWS,
            page_rows: limits::PART_PAGE_ROWS,
            narrow_parts: true,
            zstd_level: limits::PART_ZSTD_LEVEL,
            manifest_rewrite_bytes: limits::MANIFEST_REWRITE_BYTES,
            commit_interval_us: 1_000,
            lazy_write_us: 100_000,
            stalled_retry_us: 200_000,
            commit_eager_bytes: limits::LOG_COMMIT_EAGER_BYTES,
            ttl_default: None,
            compact: true,
            compaction: Limits::default(),
            observer: None,
            clock: Arc::new(MonotonicClock::default()),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("segment_bytes", &self.segment_bytes).finish_non_exhaustive()
    }
}

/// Gets reports about the work of a store. The threads of the store make the calls; these must not block.
pub trait Observer: Send + Sync {
    /// The committer has written and synced `rows` rows with `bytes` log bytes in this time.
    fn synced(&self, duration: Duration, bytes: u64, rows: u64);
    /// A flush has written `parts` parts with `rows` rows and `bytes` bytes.
    fn flushed(&self, _duration: Duration, _parts: u64, _rows: u64, _bytes: u64) {}
    /// The compactor has merged parts.
    fn compacted(&self, _compacted: &Compacted) {}
    /// Flushes wait for merges from now on, with the reason; with `None` they do not wait any more.
    fn flush_held(&self, _why: Option<&str>) {}
    /// A merge could not read a part. The compactor leaves the part as it is; reads of it get the same error.
    fn damaged(&self, _error: &StoreError) {}
    /// A merge panicked, which is a bug. The compactor does not merge the first part that the text names until the next
    /// start. The store serves the rows of all parts.
    fn merge_failed(&self, _what: &str) {}
    /// The wall clock is ahead by this much more than time can have passed, so retention uses an earlier time. Retention
    /// reports this at each run.
    fn clock_ahead(&self, _ahead: Duration) {}
}

/// The result of one compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    pub duration: Duration,
    /// Number of parts that were merged.
    pub inputs: u64,
    /// Number of new parts.
    pub outputs: u64,
    /// Number of rows of the new parts.
    pub rows: u64,
    /// Bytes of the parts that were merged.
    pub bytes_read: u64,
    /// Bytes of the new parts.
    pub bytes_written: u64,
}

/// Measures durations. If the clock stands still or jumps, the store syncs earlier or later, and retention follows the
/// wall clock slower or faster. It has no other effect.
pub trait Clock: Send + Sync {
    /// Microseconds since any fixed point.
    fn now_us(&self) -> u64;
}

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MonotonicClock {
    fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}
