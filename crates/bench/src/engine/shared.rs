//! The state that all threads of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::SliceSource;

/// Counters all threads see, the wish to end, and who leads the run through turns if somebody does.
#[derive(Debug, Default)]
pub struct Shared {
    opened: AtomicU64,
    completed: AtomicU64,
    polled_ns: AtomicU64,
    stop: AtomicBool,
    slices: Option<Arc<dyn SliceSource>>,
}

impl Shared {
    /// For a run that takes turns with another.
    pub fn in_slices(slices: Arc<dyn SliceSource>) -> Self {
        Self { slices: Some(slices), ..Self::default() }
    }

    /// Operations completed so far.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Time of all threads together in which they looked at their sockets, found nothing and had nothing to do
    /// ([`super::Plan::busy_poll_us`]).
    pub fn polled(&self) -> Duration {
        Duration::from_nanos(self.polled_ns.load(Ordering::Relaxed))
    }

    /// Connections opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Asks the run to end now; what was measured so far is its result.
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

    pub(crate) fn add_completed(&self, count: u64) {
        self.completed.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_polled(&self, ns: u64) {
        self.polled_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}
