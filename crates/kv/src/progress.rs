//! The progress of a store towards the disk.

/// The number of a batch. Sequences begin with 1 when a store is opened and grow by one per batch.
pub type Sequence = u64;

/// The progress of a store. Each sequence stands for itself and all earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The batches can be read.
    pub committed: Sequence,
    /// The batches are on the disk.
    pub durable: Sequence,
    /// The store refuses all further writes. Batches that are not durable yet will never be.
    pub sealed: bool,
}

/// Receives the changes of [`Progress`].
pub trait ProgressWatcher: Send + Sync {
    /// A thread of the store makes this call. It must not block, and must not commit.
    fn progress(&self, progress: Progress);
}
