//! What can be set about a store. Defaults are the limits of `model::limits`; tests use tiny ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::limits;
use store::StoreError;

use crate::compaction::Limits;

/// Settings of [`LocalStore::open`](crate::LocalStore::open).
#[derive(Clone)]
pub struct Options {
    /// Size of a log segment file.
    pub segment_bytes: u64,
    /// Keep one segment of zeros ready, so that a sync need not wait for the file system to find room.
    pub preallocate: bool,
    /// Log bytes not yet durable above which `append` answers busy.
    pub log_pending_bytes_max: usize,
    /// Log bytes above which a flush begins, however small the memtable is.
    pub log_flush_bytes: u64,
    /// Memtable bytes above which `append` answers busy.
    pub memtable_bytes_max: usize,
    /// Memtable bytes at which a flush to parts begins.
    pub memtable_flush_bytes: usize,
    /// Rows after which a table's open chunk is frozen. At most 65,536.
    pub chunk_rows: usize,
    /// Series whose latest values are kept in memory.
    pub latest_series_max: usize,
    /// Bytes that the latest values may take in memory.
    pub latest_bytes_max: usize,
    /// Bytes that decoded columns of parts and chunks may take in memory.
    pub array_cache_bytes_max: usize,
    /// Most columns of a table, tag columns included.
    pub columns_per_table_max: usize,
    /// Most tables.
    pub tables_max: usize,
    /// Most parts that one flush makes of one table; beyond it neighbouring days share a part.
    pub flush_parts_per_table_max: usize,
    /// Rows of a row group in a part.
    pub row_group_rows: usize,
    /// Bytes of values at which a row group in a part ends, however few rows it has.
    pub row_group_bytes: usize,
    /// Bytes of each of its inputs that a merge decodes at once.
    pub merge_window_bytes: usize,
    /// Most rows that a read of one series decodes at once.
    pub series_batch_rows: usize,
    /// Rows of a data page in a part: what a read of one series decodes at least.
    pub page_rows: usize,
    /// Tables whose only field is one f64 share parts, unless they have parts of their own or a time to live of their
    /// own. May be changed from one open to the next.
    pub narrow_parts: bool,
    /// Level of zstd for parts, 1 to 22: higher is smaller and slower.
    pub zstd_level: i32,
    /// A manifest larger than this, and than twice its last rewrite, is rewritten.
    pub manifest_rewrite_bytes: u64,
    /// A sync begins no earlier than this after the beginning of the last one, unless much is waiting; twice as late
    /// while that gathers more rows.
    pub commit_interval_us: u64,
    /// How long a batch of class `memory` may wait to be written.
    pub lazy_write_us: u64,
    /// Pause before a write that failed for want of space, descriptors or memory is tried again.
    pub stalled_retry_us: u64,
    /// Pending log bytes that make a commit begin at once.
    pub commit_eager_bytes: usize,
    /// For how long rows of tables are kept of which nobody has said it; for good when `None`.
    pub ttl_default: Option<Duration>,
    /// Merge parts whenever there is something to merge; otherwise only on
    /// [`LocalStore::compact`](crate::LocalStore::compact), and then flushes wait for no merge.
    pub compact: bool,
    /// Which parts are merged.
    pub compaction: Limits,
    /// Told about syncs, flushes and merges.
    pub observer: Option<Arc<dyn Observer>>,
    /// Measures pauses. Wall time plays no role in the store.
    pub clock: Arc<dyn Clock>,
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

/// Somebody who measures the store. Called from the store's threads; must not block.
pub trait Observer: Send + Sync {
    /// A group of `rows` rows was written and synced: how long that took and how many log bytes it was.
    fn synced(&self, duration: Duration, bytes: u64, rows: u64);
    /// A flush made `parts` parts of `rows` rows with `bytes` bytes.
    fn flushed(&self, _duration: Duration, _parts: u64, _rows: u64, _bytes: u64) {}
    /// Some parts were merged.
    fn compacted(&self, _compacted: &Compacted) {}
    /// From now on flushes wait for merges, because parts of one table overlap that should be fewer, or do not any more.
    fn flush_held(&self, _why: Option<&str>) {}
    /// A part could not be read while parts were merged. It is left as it is; reads of it meet the same error.
    fn damaged(&self, _error: &StoreError) {}
    /// A merge panicked, which is a bug. One of its parts, the first that is named, is not merged until the next start; the
    /// rows of all are served.
    fn merge_failed(&self, _what: &str) {}
    /// Old rows are dropped by an earlier time than the wall clock's, because that went ahead by so much more than time
    /// can have passed. Said at each look.
    fn clock_ahead(&self, _ahead: Duration) {}
}

/// What one compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// How long it took.
    pub duration: Duration,
    /// Parts that are gone.
    pub inputs: u64,
    /// Parts that took their place.
    pub outputs: u64,
    /// Rows of the new parts.
    pub rows: u64,
    /// Bytes of the parts that are gone.
    pub bytes_read: u64,
    /// Bytes of the new parts.
    pub bytes_written: u64,
}

/// Measures how long something took. It may stand still or jump; then the store syncs earlier or later, and follows the
/// wall clock with the dropping of old rows slower or faster, no more.
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
