//! The progress of the workers, as the callers and the other workers see it. It is part of the state under the lock.

use store::StoreError;

use crate::compaction::OverlapPressure;

/// The current activity of the committer. An append wakes it only where that is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitterState {
    /// It writes, and looks at the pending buffer again when it is done.
    Working,
    /// It sleeps until an append wakes it.
    Idle,
    /// It lets entries of class `memory` gather.
    Lazy,
    /// It waits for the end of the interval between two syncs.
    Paced,
    /// The interval is over, and it waits until this many rows are pending.
    Gathering(u32),
}

/// The committer as the other threads see it.
pub(crate) struct Committer {
    pub(crate) state: CommitterState,
    /// Another thread needs everything synced, even if no entry is pending.
    pub(crate) sync_wanted: bool,
    /// The thread has ended.
    pub(crate) ended: bool,
}

/// The flusher as the other threads see it.
#[derive(Default)]
pub(crate) struct Flusher {
    /// Number of flushes that were requested.
    pub(crate) requested: u64,
    /// Number of flushes that are complete.
    pub(crate) completed: u64,
    /// The last flush that was requested without waiting for merges.
    pub(crate) urgent: u64,
    /// The flusher waits for rows to become durable.
    pub(crate) waiting: bool,
    /// The overlapping parts that the flusher waits for the compactor to merge.
    pub(crate) backpressure: Option<OverlapPressure>,
    /// An append was answered busy since the flusher waits for merges.
    pub(crate) refused: bool,
}

/// The compactor as the other threads see it.
#[derive(Default)]
pub(crate) struct Compactor {
    /// Number of compactions that were requested.
    pub(crate) requested: u64,
    /// Number of compactions that are complete.
    pub(crate) completed: u64,
    /// Number of parts that the compactor found to be damaged. The version does not record them.
    pub(crate) damaged: u64,
    /// The transient failure, such as a full disk, that the compactor waits out.
    pub(crate) stalled: Option<StoreError>,
}
