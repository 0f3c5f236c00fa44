//! What a flush or a compaction did.

/// The answer of [`Maintenance::flush`](crate::Maintenance::flush) and [`Maintenance::compact`](crate::Maintenance::compact).
/// It counts what the store did by itself in the meantime too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Rows of the parts that were written.
    pub rows: u64,
    /// Bytes of the parts that were written.
    pub bytes: u64,
    /// All parts of the store before.
    pub before: PartsSize,
    /// All parts of the store after.
    pub after: PartsSize,
}

/// The size of all parts of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartsSize {
    /// Number of parts.
    pub parts: u64,
    /// Their bytes on the disk.
    pub bytes: u64,
}
