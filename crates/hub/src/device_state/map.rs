//! The devices that are active or connected.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use uuid::Uuid;

use super::clock::StateClock;
use super::decide::DeviceFacts;
use super::entry::Entry;
use super::limits::{INACTIVITY_TIMEOUT_DEFAULT_S, INACTIVITY_TIMEOUT_MAX_MS, REPORT_INTERVAL_MS, SHARDS};
use crate::registry::Device;

/// The states of devices in memory.
#[derive(Debug)]
pub(crate) struct DeviceStates {
    shards: [RwLock<HashMap<Uuid, Arc<Entry>>>; SHARDS],
    queue: Mutex<Queue>,
    changed: Condvar,
    pub(super) clock: StateClock,
    timeout_ms: AtomicI64,
    /// Whether the map has all active devices. Before, the stored records tell.
    is_complete: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    /// Each entry is there once.
    entries: Vec<Arc<Entry>>,
    is_stopping: bool,
}

/// A connection of a device. Dropping it is the disconnect.
#[derive(Debug)]
pub struct DevicePresence {
    states: Arc<DeviceStates>,
    entry: Arc<Entry>,
}

impl DevicePresence {
    /// The device was heard at this time of the system clock, in milliseconds.
    #[inline]
    pub fn touch(&self, system_ms: i64) {
        if self.entry.touch(self.states.clock.of_system(system_ms)) {
            self.states.enqueue(&self.entry);
        }
    }
}

impl Drop for DevicePresence {
    fn drop(&mut self) {
        self.entry.disconnected(self.states.clock.now_ms());
        self.states.enqueue(&self.entry);
    }
}

impl DeviceStates {
    pub(crate) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            queue: Mutex::default(),
            changed: Condvar::new(),
            clock: StateClock::new(),
            timeout_ms: AtomicI64::new(i64::from(INACTIVITY_TIMEOUT_DEFAULT_S) * 1_000),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Sets the timeout of devices without one of their own.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        let millis = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        self.timeout_ms.store(millis.clamp(1, INACTIVITY_TIMEOUT_MAX_MS), Ordering::Relaxed);
    }

    /// A device has connected.
    pub(crate) fn connect(self: &Arc<Self>, device: &Device) -> DevicePresence {
        let entry = self.entry(device.id);
        let now_ms = self.clock.now_ms();
        entry.connected(now_ms);
        entry.touch(now_ms);
        self.enqueue(&entry);
        DevicePresence { states: Arc::clone(self), entry }
    }

    /// A device without a connection was heard.
    pub(crate) fn touch(&self, device: &Device) {
        let entry = self.entry(device.id);
        if entry.touch(self.clock.now_ms()) {
            self.enqueue(&entry);
        }
    }

    /// The attributes of a device have changed: its timeout, perhaps.
    pub(crate) fn reload(&self, device: Uuid) {
        let entry = self.entry(device);
        entry.reload();
        self.enqueue(&entry);
    }

    /// Whether a device is active; `None` if the stored record tells.
    pub(crate) fn is_active(&self, device: Uuid) -> Option<bool> {
        match self.shard(device).read().get(&device) {
            Some(entry) if entry.is_loaded() || entry.last_ms() > 0 => Some(self.seen(entry).is_active()),
            Some(_) => None,
            None => self.is_complete.load(Ordering::SeqCst).then_some(false),
        }
    }

    /// The last activity of a device in memory.
    pub(crate) fn last_activity_ms(&self, device: Uuid) -> Option<i64> {
        let last_ms = self.shard(device).read().get(&device).map(|entry| entry.last_ms());
        last_ms.filter(|last_ms| *last_ms > 0)
    }

    /// Forgets a deleted device.
    pub(crate) fn forget(&self, device: Uuid) {
        self.shard(device).write().remove(&device);
    }

    /// The entry of a device, a new one if there is none.
    pub(super) fn entry(&self, device: Uuid) -> Arc<Entry> {
        let shard = self.shard(device);
        if let Some(entry) = shard.read().get(&device) {
            return Arc::clone(entry);
        }
        let mut shard = shard.write();
        Arc::clone(shard.entry(device).or_insert_with(|| Arc::new(Entry::new(device))))
    }

    pub(super) fn seen(&self, entry: &Entry) -> DeviceFacts {
        entry.seen(self.clock.now_ms(), self.timeout_ms.load(Ordering::Relaxed))
    }

    pub(super) fn complete(&self) {
        self.is_complete.store(true, Ordering::SeqCst);
    }

    pub(super) fn enqueue(&self, entry: &Arc<Entry>) {
        if entry.enqueue() {
            self.queue.lock().entries.push(Arc::clone(entry));
            self.changed.notify_one();
        }
    }

    /// Waits for entries in the queue, at most for `timeout`, and takes them. Returns whether the thread ends too.
    pub(super) fn next(&self, timeout: Duration) -> (Vec<Arc<Entry>>, bool) {
        let mut queue = self.queue.lock();
        if queue.entries.is_empty() && !queue.is_stopping {
            self.changed.wait_for(&mut queue, timeout);
        }
        (std::mem::take(&mut queue.entries), queue.is_stopping)
    }

    /// The thread ends when it has written what is in the queue.
    pub(super) fn stop(&self) {
        self.queue.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// The active devices that are silent for too long, at most `reports_max` whose last activity is to be written, and with
    /// `is_last` all whose last activity is not stored. Removes entries that nobody needs.
    pub(super) fn sweep(&self, reports_max: usize, is_last: bool) -> Vec<Arc<Entry>> {
        let (now_ms, timeout_ms) = (self.clock.now_ms(), self.timeout_ms.load(Ordering::Relaxed));
        let (mut due, mut reports) = (Vec::new(), 0);
        for shard in &self.shards {
            let mut unused = false;
            for entry in shard.read().values() {
                let seen = entry.seen(now_ms, timeout_ms);
                unused |= is_unused(entry);
                if !entry.is_loaded() {
                    continue;
                }
                if seen.active != seen.is_active() || (is_last && seen.last_ms > seen.stored_ms) {
                    due.push(Arc::clone(entry));
                } else if seen.last_ms.saturating_sub(seen.stored_ms) >= REPORT_INTERVAL_MS
                    && reports < reports_max
                {
                    reports += 1;
                    due.push(Arc::clone(entry));
                }
            }
            if unused {
                // The finder of an entry holds the lock meanwhile, so nobody can begin to use one here.
                shard.write().retain(|_, entry| !is_unused(entry));
            }
        }
        due
    }

    fn shard(&self, device: Uuid) -> &RwLock<HashMap<Uuid, Arc<Entry>>> {
        // Ids are random.
        &self.shards[usize::from(device.as_bytes()[15]) % SHARDS]
    }
}

/// Whether only the map has the entry, and all of it is stored.
fn is_unused(entry: &Arc<Entry>) -> bool {
    Arc::strong_count(entry) == 1 && entry.is_idle()
}
