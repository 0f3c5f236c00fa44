//! Changes of shared attributes that wait for their durability.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kv::{Progress, ProgressWatcher, Sequence};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::device_messages::{DeviceMessage, Outboxes};

/// Sends changes to the connections of their devices when they are durable. Those of a device keep their order.
///
/// What waits is as large as the batches that the key-value store has not made durable, which it bounds
/// ([`kv::limits::UNDURABLE_BYTES_MAX`]).
#[derive(Debug)]
pub(crate) struct Pushes {
    outboxes: Arc<Outboxes>,
    waiting: Mutex<VecDeque<Push>>,
    /// Number of waiting ones, to be read without the lock.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Push {
    sequence: Sequence,
    device: Uuid,
    message: Arc<DeviceMessage>,
}

impl Pushes {
    pub(crate) fn new(outboxes: Arc<Outboxes>) -> Self {
        Self { outboxes, waiting: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Adds a change. Those of a device come in the order of their sequences. `durable` returns the present progress: the store
    /// may have announced the durability of this change before.
    pub(crate) fn add(
        &self,
        sequence: Sequence,
        device: Uuid,
        message: DeviceMessage,
        durable: impl FnOnce() -> Sequence,
    ) {
        let push = Push { sequence, device, message: Arc::new(message) };
        {
            let mut waiting = self.waiting.lock();
            waiting.push_back(push);
            self.count.store(waiting.len(), Ordering::SeqCst);
        }
        self.send(durable());
    }

    /// Sends the changes up to `durable`. The lock is held meanwhile, so that two threads cannot change the order.
    fn send(&self, durable: Sequence) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        while let Some(push) = waiting.pop_front_if(|push| push.sequence <= durable) {
            self.outboxes.send(push.device, &push.message);
        }
        self.count.store(waiting.len(), Ordering::SeqCst);
    }
}

impl ProgressWatcher for Pushes {
    fn progress(&self, progress: Progress) {
        self.send(progress.durable);
    }
}
