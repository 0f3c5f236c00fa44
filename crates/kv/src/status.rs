//! Sizes and health of a store.

/// The answer of [`KeyValueStore::status`](crate::KeyValueStore::status).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvStatus {
    /// Why the store refuses writes; `None` when it takes them. Reads continue.
    pub sealed: Option<String>,
    /// Why writes must wait at present; `None` when they do not.
    pub busy: Option<String>,
    /// Bytes of the store on disk.
    pub disk_bytes: u64,
    /// Bytes of the cache, and of records that are not in files yet.
    pub memory_bytes: u64,
    /// Bytes of batches that are committed and not durable yet.
    pub undurable_bytes: u64,
    /// Number of batches that were committed since the store was opened.
    pub commits: u64,
    /// Number of syncs since the store was opened. One sync covers many batches.
    pub syncs: u64,
}
