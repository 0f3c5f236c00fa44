//! The state that all threads of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::SliceSource;

/// The counters, the stop flag, and the slice source if the run is sliced.
#[derive(Debug, Default)]
pub struct Shared {
    opened: AtomicU64,
    completed: AtomicU64,
    polled_ns: AtomicU64,
    /// Workers that may still send operations of the current segment.
    sending: AtomicUsize,
    stop: AtomicBool,
    slices: Option<Arc<dyn SliceSource>>,
}

impl Shared {
    /// For a run that alternates with another run in slices.
    pub fn in_slices(slices: Arc<dyn SliceSource>) -> Self {
        Self { slices: Some(slices), ..Self::default() }
    }

    /// The number of operations completed so far.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// The time of all threads together in which they polled their sockets without finding work
    /// ([`super::Plan::busy_poll_us`]).
    pub fn polled(&self) -> Duration {
        Duration::from_nanos(self.polled_ns.load(Ordering::Relaxed))
    }

    /// The number of connections opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Asks the run to end now. The measurements so far are its result.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn slices(&self) -> Option<&dyn SliceSource> {
        self.slices.as_deref()
    }

    /// Counts completed operations.
    pub fn add_completed(&self, count: u64) {
        self.completed.fetch_add(count, Ordering::Relaxed);
    }

    /// Begins a segment with `workers` workers.
    pub(super) fn begin_sending(&self, workers: usize) {
        self.sending.store(workers, Ordering::Release);
    }

    /// A worker has sent its last operation of the segment.
    pub(super) fn end_sending(&self) {
        self.sending.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a worker may still send operations of the segment.
    pub(super) fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Acquire) > 0
    }

    pub(crate) fn add_polled(&self, ns: u64) {
        self.polled_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}
