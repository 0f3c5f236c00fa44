//! Messages for devices.

use std::sync::Arc;

use model::{Timestamp, Value};
use tokio::sync::watch;

/// A message for a device. All connections of the device share it.
#[derive(Debug)]
pub enum DeviceMessage {
    /// Shared attributes have new values.
    AttributesChanged {
        /// The new values.
        entries: Vec<Attribute>,
    },
    /// Shared attributes were deleted.
    AttributesDeleted { keys: Vec<Arc<str>> },
    /// The server calls a procedure of the device.
    RpcRequest(RpcRequest),
}

/// The value of a shared attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    pub key: Arc<str>,
    pub value: Value,
    /// When it was set.
    pub ts: Timestamp,
}

/// A request of an RPC from the server to a device.
#[derive(Debug)]
pub struct RpcRequest {
    /// The number that the device repeats in its answer; not negative.
    pub id: i32,
    /// The procedure.
    pub method: Box<str>,
    /// Its parameters as JSON text.
    pub params: Box<str>,
    /// Whether nobody waits for an answer of the device.
    pub one_way: bool,
    /// Whether the request is stored. The door reports the delivery of such a request.
    pub persistent: bool,
    /// From then on nobody waits. Outboxes do not give the request out any more.
    pub expires_at: Timestamp,
    taken: watch::Sender<bool>,
}

impl RpcRequest {
    /// A request that no connection has taken. The receiver becomes `true` when one takes it, and closes when no outbox has it.
    pub(crate) fn new(
        id: i32,
        method: Box<str>,
        params: Box<str>,
        one_way: bool,
        persistent: bool,
        expires_at: Timestamp,
    ) -> (Self, watch::Receiver<bool>) {
        let (taken, receiver) = watch::channel(false);
        (Self { id, method, params, one_way, persistent, expires_at, taken }, receiver)
    }

    /// Whether a connection has taken the request.
    pub(crate) fn is_taken(&self) -> bool {
        *self.taken.borrow()
    }

    pub(super) fn set_taken(&self) {
        self.taken.send_replace(true);
    }
}

/// The kind of a message, which a connection subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Attributes,
    Rpc,
}

impl DeviceMessage {
    pub(super) fn kind(&self) -> MessageKind {
        match self {
            Self::AttributesChanged { .. } | Self::AttributesDeleted { .. } => MessageKind::Attributes,
            Self::RpcRequest(_) => MessageKind::Rpc,
        }
    }

    /// Whether nobody waits for it any more.
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        matches!(self, Self::RpcRequest(request) if request.expires_at <= now)
    }

    /// About the bytes that the message takes in memory.
    pub(super) fn weight(&self) -> usize {
        // The counters of an `Arc` and the overhead of an allocation.
        const SHARED_BYTES: usize = 2 * size_of::<usize>() + 16;
        let content = match self {
            Self::AttributesChanged { entries } => entries.iter().map(Attribute::weight).sum(),
            Self::AttributesDeleted { keys } => {
                keys.iter().map(|key| size_of::<Arc<str>>() + SHARED_BYTES + key.len()).sum()
            }
            // The channel has an allocation of its own.
            Self::RpcRequest(request) => request.method.len() + request.params.len() + 8 * SHARED_BYTES,
        };
        size_of::<Self>() + SHARED_BYTES + content
    }
}

impl Attribute {
    fn weight(&self) -> usize {
        let text = match &self.value {
            Value::String(text) | Value::Json(text) => text.len(),
            Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
        };
        size_of::<Self>() + 32 + self.key.len() + text
    }
}
