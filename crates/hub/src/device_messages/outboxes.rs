//! The outboxes of all connected devices.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::limits::Portion;
use parking_lot::Mutex;
use uuid::Uuid;

use super::limits::{OUTBOX_SHARDS, OUTBOXES_BYTES_MAX};
use super::message::DeviceMessage;
use super::outbox::{Interests, Outbox, Put, TotalBytes};
use crate::clock::system_now;
use crate::metrics::Metrics;
use crate::wake::Wake;

/// The outboxes of all connections of devices.
#[derive(Debug)]
pub struct Outboxes {
    shards: [Mutex<Shard>; OUTBOX_SHARDS],
    next_id: AtomicU64,
    total: TotalBytes,
    metrics: Arc<Metrics>,
}

/// The connections by device and number.
type Shard = BTreeMap<(Uuid, u64), Arc<Outbox>>;

/// The outbox of a connection. The connection is gone when this is dropped, and so is what waits for it.
#[derive(Debug)]
pub struct DeviceOutbox {
    outboxes: Arc<Outboxes>,
    device: Uuid,
    id: u64,
    outbox: Arc<Outbox>,
}

/// How many connections got a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Connections whose outbox has the message.
    pub connections: usize,
    /// Connections that subscribed to such messages and have no room.
    pub full: usize,
}

impl Outboxes {
    /// Without connections; with bounds that fit the memory of this machine.
    pub fn on(memory: Portion, metrics: Arc<Metrics>) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            next_id: AtomicU64::new(0),
            total: TotalBytes::new(
                memory.of(OUTBOXES_BYTES_MAX),
                metrics.device_messages.waiting_bytes.clone(),
            ),
            metrics,
        }
    }

    /// Opens the outbox of a connection of a device.
    pub fn open(self: &Arc<Self>, device: Uuid, interests: Interests, wake: Arc<dyn Wake>) -> DeviceOutbox {
        let outbox = Arc::new(Outbox::new(interests, wake));
        self.insert(&mut self.shard(device).lock(), device, outbox)
    }

    /// Opens the outbox of a device behind a connection of a gateway. At most one such connection has an outbox for the device: another
    /// one loses it if `takes_over` is set; otherwise this returns `None`.
    pub(crate) fn open_behind(
        self: &Arc<Self>,
        device: Uuid,
        wake: Arc<dyn Wake>,
        takes_over: bool,
    ) -> Option<DeviceOutbox> {
        let mut shard = self.shard(device).lock();
        let former = of_device(&shard, device).find(|outbox| outbox.speaks_for_device());
        match former {
            Some(former) if takes_over => former.move_away(&self.total),
            Some(_) => return None,
            None => {}
        }
        Some(self.insert(&mut shard, device, Arc::new(Outbox::behind(wake))))
    }

    fn insert(self: &Arc<Self>, shard: &mut Shard, device: Uuid, outbox: Arc<Outbox>) -> DeviceOutbox {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        shard.insert((device, id), Arc::clone(&outbox));
        self.metrics.device_messages.outboxes.inc();
        DeviceOutbox { outboxes: Arc::clone(self), device, id, outbox }
    }

    /// Puts a message into the outboxes of all connections of a device that have subscribed to such messages.
    pub fn send(&self, device: Uuid, message: &Arc<DeviceMessage>) -> Delivered {
        let connections: Vec<Arc<Outbox>> = {
            let shard = self.shard(device).lock();
            of_device(&shard, device).cloned().collect()
        };
        let mut delivered = Delivered::default();
        for outbox in connections {
            self.put(&outbox, message, &mut delivered);
        }
        delivered
    }

    fn put(&self, outbox: &Outbox, message: &Arc<DeviceMessage>, delivered: &mut Delivered) {
        let counted = &self.metrics.device_messages;
        match outbox.put(message, &self.total, system_now()) {
            Put::Taken => delivered.connections += 1,
            Put::Coalesced => {
                delivered.connections += 1;
                counted.coalesced.inc();
            }
            Put::Unwanted => {}
            Put::Full => {
                delivered.full += 1;
                counted.refused.inc();
            }
        }
    }

    fn shard(&self, device: Uuid) -> &Mutex<Shard> {
        // Ids are random.
        let hash = u64::from_le_bytes(device.as_bytes()[..8].try_into().expect("BUG: an id has 16 bytes"));
        &self.shards[(hash % OUTBOX_SHARDS as u64) as usize]
    }
}

/// The outboxes of a device.
fn of_device(shard: &Shard, device: Uuid) -> impl Iterator<Item = &Arc<Outbox>> {
    shard.range((device, 0)..=(device, u64::MAX)).map(|(_, outbox)| outbox)
}

impl DeviceOutbox {
    /// Whether another connection of a gateway speaks for the device now. Then nothing waits here any more.
    pub fn is_moved(&self) -> bool {
        self.outbox.is_moved()
    }

    /// The device of the connection.
    pub fn device(&self) -> Uuid {
        self.device
    }

    /// Takes the first messages, at most `max`. The outbox wakes its owner again after it has become empty, so the owner takes
    /// until it gets fewer than `max`.
    pub fn take(&self, max: usize) -> Vec<Arc<DeviceMessage>> {
        self.outbox.take(max, &self.outboxes.total, system_now())
    }

    /// Sets what the connection has subscribed to. Returns whether it wants RPC requests now and did not before.
    pub(crate) fn set_interests(&self, interests: Interests) -> bool {
        self.outbox.set_interests(interests)
    }

    /// Puts a message into this outbox only. Returns whether it has the message.
    pub(crate) fn put(&self, message: &Arc<DeviceMessage>) -> bool {
        let mut delivered = Delivered::default();
        self.outboxes.put(&self.outbox, message, &mut delivered);
        delivered.connections > 0
    }
}

impl Drop for DeviceOutbox {
    fn drop(&mut self) {
        self.outboxes.shard(self.device).lock().remove(&(self.device, self.id));
        self.outbox.clear(&self.outboxes.total);
        self.outboxes.metrics.device_messages.outboxes.dec();
    }
}
