//! Contents that the queues of several sessions share in the engine.

use std::collections::HashMap;

use kv::Space;
use parking_lot::Mutex;

/// Contents by identifier.
pub(super) const CONTENTS: Space = Space::new("mqtt_contents");

/// Messages above this size are kept once for all queues.
pub(super) const SHARED_BYTES_MIN: usize = 256;

/// Counts the queues that need each content.
#[derive(Debug, Default)]
pub(super) struct SharedContents {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    queues: HashMap<u64, u64>,
    next: u64,
}

impl SharedContents {
    /// A new identifier for a content that `queues` queues need.
    pub(super) fn add(&self, queues: u64) -> u64 {
        let mut counts = self.counts.lock();
        let id = counts.next;
        counts.next += 1;
        counts.queues.insert(id, queues);
        id
    }

    /// Forgets a content whose write the engine has refused.
    pub(super) fn forget(&self, id: u64) {
        self.counts.lock().queues.remove(&id);
    }

    /// Counts a queue that was read from the engine.
    pub(super) fn count(&self, id: u64) {
        let mut counts = self.counts.lock();
        *counts.queues.entry(id).or_default() += 1;
        counts.next = counts.next.max(id + 1);
    }

    /// Whether any queue needs a content.
    pub(super) fn is_needed(&self, id: u64) -> bool {
        self.counts.lock().queues.contains_key(&id)
    }

    /// A queue does not need a content any more. Returns whether no queue needs it.
    pub(super) fn release(&self, id: u64) -> bool {
        let mut counts = self.counts.lock();
        let Some(count) = counts.queues.get_mut(&id) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            counts.queues.remove(&id);
        }
        is_last
    }
}
