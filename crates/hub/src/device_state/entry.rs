//! The state of one device in memory. Everything is atomic: doors write it without a lock.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use uuid::Uuid;

use super::decide::{Decision, DeviceFacts};
use super::stored::DeviceState;

/// The state of a device that is active or connected.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) device: Uuid,
    last_ms: AtomicI64,
    connected_ms: AtomicI64,
    disconnected_ms: AtomicI64,
    /// Whether the stored state, which follows, was read.
    is_loaded: AtomicBool,
    active: AtomicBool,
    stored_ms: AtomicI64,
    alarm_ms: AtomicI64,
    /// The timeout of the device; 0 for the default one.
    timeout_ms: AtomicI64,
    /// Whether the entry waits in the queue.
    is_queued: AtomicBool,
}

impl Entry {
    pub(super) fn new(device: Uuid) -> Self {
        Self {
            device,
            last_ms: AtomicI64::new(0),
            connected_ms: AtomicI64::new(0),
            disconnected_ms: AtomicI64::new(0),
            is_loaded: AtomicBool::new(false),
            active: AtomicBool::new(false),
            stored_ms: AtomicI64::new(0),
            alarm_ms: AtomicI64::new(0),
            timeout_ms: AtomicI64::new(0),
            is_queued: AtomicBool::new(false),
        }
    }

    /// Notes activity. Returns whether there is something to do: the device is not active yet. The orderings pair with those of
    /// [`apply`](Self::apply): either this sees that the device is inactive, or the thread sees the time.
    #[inline]
    pub(super) fn touch(&self, now_ms: i64) -> bool {
        if now_ms > self.last_ms.load(Ordering::SeqCst) {
            self.last_ms.fetch_max(now_ms, Ordering::SeqCst);
        }
        !self.active.load(Ordering::SeqCst)
    }

    pub(super) fn connected(&self, now_ms: i64) {
        self.connected_ms.fetch_max(now_ms, Ordering::SeqCst);
    }

    pub(super) fn disconnected(&self, now_ms: i64) {
        self.disconnected_ms.fetch_max(now_ms, Ordering::SeqCst);
    }

    /// Marks the entry as queued. Returns whether it was not.
    pub(super) fn enqueue(&self) -> bool {
        !self.is_queued.swap(true, Ordering::SeqCst)
    }

    /// The entry leaves the queue. Activity from now on queues it again.
    pub(super) fn dequeue(&self) {
        self.is_queued.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_queued(&self) -> bool {
        self.is_queued.load(Ordering::SeqCst)
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::SeqCst)
    }

    /// The stored state must be read again.
    pub(super) fn reload(&self) {
        self.is_loaded.store(false, Ordering::SeqCst);
    }

    /// Takes what is stored.
    pub(super) fn load(&self, stored: &DeviceState) {
        self.last_ms.fetch_max(stored.last_activity_ms, Ordering::SeqCst);
        self.stored_ms.store(stored.last_activity_ms, Ordering::SeqCst);
        self.alarm_ms.store(stored.inactivity_alarm_ms, Ordering::SeqCst);
        self.timeout_ms.store(stored.timeout_ms.unwrap_or(0), Ordering::SeqCst);
        self.active.store(stored.active, Ordering::SeqCst);
        self.is_loaded.store(true, Ordering::SeqCst);
    }

    /// The device is gone.
    pub(super) fn clear(&self) {
        self.load(&DeviceState::default());
        self.connected_ms.store(0, Ordering::SeqCst);
        self.disconnected_ms.store(0, Ordering::SeqCst);
    }

    pub(super) fn seen(&self, now_ms: i64, default_timeout_ms: i64) -> DeviceFacts {
        let own_ms = self.timeout_ms.load(Ordering::SeqCst);
        DeviceFacts {
            now_ms,
            last_ms: self.last_ms.load(Ordering::SeqCst),
            timeout_ms: if own_ms > 0 { own_ms } else { default_timeout_ms },
            connected_ms: self.connected_ms.load(Ordering::SeqCst),
            disconnected_ms: self.disconnected_ms.load(Ordering::SeqCst),
            active: self.active.load(Ordering::SeqCst),
            stored_ms: self.stored_ms.load(Ordering::SeqCst),
            alarm_ms: self.alarm_ms.load(Ordering::SeqCst),
            is_last: false,
        }
    }

    /// What was decided is stored. Returns whether something new came meanwhile.
    pub(super) fn apply(&self, seen: &DeviceFacts, decision: &Decision) -> bool {
        self.stored_ms.store(decision.stored_ms, Ordering::SeqCst);
        self.alarm_ms.store(decision.alarm_ms, Ordering::SeqCst);
        self.active.store(decision.active, Ordering::SeqCst);
        let done = |time: &AtomicI64, seen_ms: i64| {
            seen_ms == 0 || time.compare_exchange(seen_ms, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let events_done =
            done(&self.connected_ms, seen.connected_ms) & done(&self.disconnected_ms, seen.disconnected_ms);
        let was_heard = !decision.active && self.last_ms.load(Ordering::SeqCst) > seen.last_ms;
        !events_done || was_heard
    }

    /// The last activity; 0 for none.
    pub(super) fn last_ms(&self) -> i64 {
        self.last_ms.load(Ordering::SeqCst)
    }

    /// Whether nothing is known that is not stored.
    pub(super) fn is_idle(&self) -> bool {
        let is_none = |time: &AtomicI64| time.load(Ordering::SeqCst) == 0;
        !self.active.load(Ordering::SeqCst)
            && !self.is_queued()
            && is_none(&self.connected_ms)
            && is_none(&self.disconnected_ms)
    }
}
