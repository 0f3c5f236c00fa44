//! What several tests need.

use store_local::Options;

/// Sizes so small that a handful of rows meets every boundary.
pub(crate) fn tiny() -> Options {
    Options {
        segment_bytes: 4096,
        preallocate: false,
        log_flush_bytes: 64 * 1024,
        memtable_flush_bytes: 2048,
        memtable_bytes_max: 256 * 1024,
        chunk_rows: 8,
        latest_series_max: 100,
        flush_parts_per_table_max: 3,
        row_group_rows: 16,
        page_rows: 4,
        manifest_rewrite_bytes: 2048,
        commit_interval_us: 0,
        lazy_write_us: 1_000,
        full_retry_us: 1_000,
        ..Options::default()
    }
}
