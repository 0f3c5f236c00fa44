//! The pending calls of all devices.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytes::Bytes;
use kv::KvError;
use model::limits::Portion;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::error::RpcError;
use super::limits::{RPC_PENDING_BYTES_MAX, RPC_PENDING_MAX, RPC_PENDING_PER_DEVICE_MAX, RPC_SHARDS};
use super::request::RpcCall;
use super::stored::StoredCalls;
use crate::clock::system_now;
use crate::device_messages::{DeviceMessage, DeviceOutbox, Interests, Outboxes, RpcRequest};
use crate::metrics::Metrics;

/// The pending calls.
///
/// Locks are taken in this order: a part of this map, the index of the stored calls, the outboxes. So a call that begins and a connection that subscribes
/// at the same moment give one request to the connection.
#[derive(Debug)]
pub(crate) struct Calls {
    shards: [Mutex<Shard>; RPC_SHARDS],
    next_id: AtomicU32,
    count: AtomicUsize,
    bytes: AtomicUsize,
    bytes_max: usize,
    outboxes: Arc<Outboxes>,
    stored: Arc<StoredCalls>,
    metrics: Arc<Metrics>,
}

/// The calls by device and number.
type Shard = BTreeMap<(Uuid, i32), Pending>;

#[derive(Debug)]
struct Pending {
    message: Arc<DeviceMessage>,
    /// Whether an outbox got it.
    sent: bool,
    /// For the answer of a two-way call, or the reason why no door can send it.
    answer: Option<oneshot::Sender<Result<Bytes, String>>>,
}

/// A call that has begun. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: Arc<Calls>,
    device: Uuid,
    id: i32,
    taken: watch::Receiver<bool>,
    answer: Option<oneshot::Receiver<Result<Bytes, String>>>,
}

impl Calls {
    /// Without calls; with bounds that fit the memory of this machine.
    pub(crate) fn on(
        memory: Portion,
        outboxes: Arc<Outboxes>,
        stored: Arc<StoredCalls>,
        metrics: Arc<Metrics>,
    ) -> Self {
        // Numbers of an earlier process do not repeat soon, so a late answer to one of its calls is not an answer to a new call.
        let first = (system_now().micros() / 1_000_000) as u32;
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            next_id: AtomicU32::new(first),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            bytes_max: memory.of(RPC_PENDING_BYTES_MAX),
            outboxes,
            stored,
            metrics,
        }
    }

    /// A number for a stored call of a device.
    pub(crate) fn number(&self, device: Uuid) -> i32 {
        self.free_id(&self.shard(device).lock(), device)
    }

    /// Sends an open stored call to the connections of its device.
    pub(crate) fn send_stored(&self, device: Uuid, id: Uuid) -> Result<(), KvError> {
        let _shard = self.shard(device).lock();
        if let Some(message) = self.stored.request(id)? {
            self.offer(device, id, &message);
        }
        Ok(())
    }

    /// Sends the stored calls for which the outboxes of a device had no room.
    pub(crate) fn send_without_room(&self, device: Uuid) -> Result<(), KvError> {
        let _shard = self.shard(device).lock();
        for (id, message) in self.stored.without_room(device, system_now())? {
            if !self.offer(device, id, &message) {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether an outbox has the call, or none wants it.
    fn offer(&self, device: Uuid, id: Uuid, message: &Arc<DeviceMessage>) -> bool {
        let delivered = self.outboxes.send(device, message);
        let had_room = delivered.connections > 0 || delivered.full == 0;
        self.stored.set_offered(id, had_room);
        had_room
    }

    /// Begins a call and sends it to the connections of the device.
    ///
    /// # Errors
    /// A bound is reached, or connections want the call and none has room.
    pub(crate) fn begin(self: &Arc<Self>, device: Uuid, call: RpcCall) -> Result<RunningCall, RpcError> {
        let mut shard = self.shard(device).lock();
        self.check_room(&shard, device, call.params.len())?;
        let id = self.free_id(&shard, device);
        let (sender, answer) = match call.one_way {
            true => (None, None),
            false => {
                let (sender, receiver) = oneshot::channel();
                (Some(sender), Some(receiver))
            }
        };
        let RpcCall { method, params, one_way, expires_at } = call;
        let (request, taken) = RpcRequest::new(id, method.into(), params.into(), one_way, false, expires_at);
        let message = Arc::new(DeviceMessage::RpcRequest(request));
        let delivered = self.outboxes.send(device, &message);
        if delivered.connections == 0 && delivered.full > 0 {
            return Err(RpcError::OutboxFull { device });
        }
        let pending = Pending { message, sent: delivered.connections > 0, answer: sender };
        self.insert(&mut shard, (device, id), pending);
        Ok(RunningCall { calls: Arc::clone(self), device, id, taken, answer })
    }

    /// Sets what a connection has subscribed to. If it wants RPC requests now and did not before, it gets the pending calls of
    /// its device: all that wait for an answer, or (`only_new`) those that no connection has taken.
    pub(crate) fn subscribe(&self, outbox: &DeviceOutbox, interests: Interests, only_new: bool) {
        let device = outbox.device();
        let mut shard = self.shard(device).lock();
        if !outbox.set_interests(interests) {
            return;
        }
        for (_, pending) in shard.range_mut((device, 0)..=(device, i32::MAX)) {
            let is_new = !pending.request().is_taken();
            if is_new || (pending.answer.is_some() && !only_new) {
                pending.sent |= outbox.put(&pending.message);
            }
        }
        match self.stored.for_connection(device, only_new, system_now()) {
            Ok(calls) => {
                for (id, message) in calls {
                    self.stored.set_offered(id, outbox.put(&message));
                }
            }
            // The next connection tries again.
            Err(error) => tracing::warn!(%device, %error, "cannot read the stored calls of a device"),
        }
    }

    /// Gives the answer of a device to its call, or the reason why no door can send the call. Returns whether a call waited for it.
    pub(crate) fn answer(&self, device: Uuid, id: i32, answer: Result<Bytes, String>) -> bool {
        let sender = {
            let mut shard = self.shard(device).lock();
            shard.get_mut(&(device, id)).and_then(|pending| pending.answer.take())
        };
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    fn check_room(&self, shard: &Shard, device: Uuid, bytes: usize) -> Result<(), RpcError> {
        let own = shard.range((device, 0)..=(device, i32::MAX)).count();
        let (all, held) = (self.count.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let bounds = [
            ("calls of this device are pending", own, own + 1, RPC_PENDING_PER_DEVICE_MAX),
            ("calls of all devices are pending", all, all + 1, RPC_PENDING_MAX),
            ("bytes of pending calls are in memory", held, held + bytes, self.bytes_max),
        ];
        let over = bounds.into_iter().find(|(_, _, wanted, limit)| wanted > limit);
        match over {
            Some((what, actual, _, limit)) => Err(RpcError::Busy { what, actual, limit }),
            None => Ok(()),
        }
    }

    fn free_id(&self, shard: &Shard, device: Uuid) -> i32 {
        loop {
            let id = (self.next_id.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32) as i32;
            if !shard.contains_key(&(device, id)) && !self.stored.has_number(device, id) {
                return id;
            }
        }
    }

    fn insert(&self, shard: &mut Shard, key: (Uuid, i32), pending: Pending) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(pending.request().params.len(), Ordering::Relaxed);
        self.metrics.rpc.pending.inc();
        shard.insert(key, pending);
    }

    fn remove(&self, shard: &mut Shard, key: (Uuid, i32)) -> Option<Pending> {
        let pending = shard.remove(&key)?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(pending.request().params.len(), Ordering::Relaxed);
        self.metrics.rpc.pending.dec();
        Some(pending)
    }

    fn shard(&self, device: Uuid) -> &Mutex<Shard> {
        &self.shards[(device.as_u128() % RPC_SHARDS as u128) as usize]
    }
}

impl Pending {
    fn request(&self) -> &RpcRequest {
        match &*self.message {
            DeviceMessage::RpcRequest(request) => request,
            other => unreachable!("BUG: a pending call is a request, not {other:?}"),
        }
    }
}

impl RunningCall {
    /// Whether a connection got the request.
    pub(crate) fn is_sent(&self) -> bool {
        self.shard().get(&(self.device, self.id)).is_some_and(|pending| pending.sent)
    }

    /// Waits until a connection has taken a one-way call (`None`), or the device has answered a two-way call.
    ///
    /// # Errors
    /// The reason why no door can send the call.
    pub(crate) async fn outcome(&mut self) -> Result<Option<Bytes>, String> {
        match &mut self.answer {
            // The map of pending calls has the sender until this is dropped.
            Some(answer) => answer.await.expect("BUG: a pending call has its sender").map(Some),
            None => {
                let taken = self.taken.wait_for(|taken| *taken).await;
                taken.map(drop).expect("BUG: a pending call has its message");
                Ok(None)
            }
        }
    }

    fn shard(&self) -> MutexGuard<'_, Shard> {
        self.calls.shard(self.device).lock()
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.remove(&mut self.shard(), (self.device, self.id));
    }
}
