//! Sizes and health of a store.

/// The answer of [`Maintenance::status`](crate::Maintenance::status).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Why the store refuses writes; `None` when it takes them. Reads continue.
    pub sealed: Option<String>,
    /// Why writes must wait at present (a full disk, merges that have fallen behind); `None` when they do not.
    pub busy: Option<String>,
    /// Why flushes wait: merges have fallen behind. Writes continue until memory is full. `None` when flushes do not wait.
    pub flush_held: Option<String>,
    /// Number of tables.
    pub tables: u64,
    /// Number of series.
    pub series: u64,
    /// Number of rows that were appended since the store was opened.
    pub rows_appended: u64,
    /// Log bytes that were appended and are not durable yet.
    pub log_pending_bytes: u64,
    /// Log bytes that a recovery would read.
    pub log_bytes: u64,
    /// Bytes of rows in memory that no part holds yet.
    pub memtable_bytes: u64,
    /// Number of parts.
    pub parts: u64,
    /// Bytes of all parts on disk.
    pub part_bytes: u64,
    /// Number of deletions that still hide rows in memory or files.
    pub deletions: u64,
    /// The largest number of parts of one table. Compaction keeps it down.
    pub parts_per_table_max: u64,
    /// The largest number of parts of one table that a read of one moment opens. Parts that are too large for a merge
    /// count as well.
    pub parts_overlap_max: u64,
}
