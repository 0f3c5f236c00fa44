//! Messages of the broker.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use uuid::Uuid;

use super::subscription::Quality;

/// A message as all its receivers share it.
#[derive(Debug)]
pub struct Message {
    /// The topic name.
    pub topic: Box<str>,
    pub payload: Box<[u8]>,
    /// Properties that receivers get unchanged, in the layout of MQTT 5: payload format, content type, response topic,
    /// correlation data and user properties. The broker does not read them.
    pub properties: Box<[u8]>,
    /// Milliseconds since the epoch after which the message is not delivered.
    pub expires_at_ms: Option<i64>,
    held: CountedBytes,
}

/// The parts of a message that comes from a client or from the disk.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// The topic name.
    pub topic: &'a str,
    pub payload: &'a [u8],
    /// See [`Message::properties`].
    pub properties: &'a [u8],
    /// See [`Message::expires_at_ms`].
    pub expires_at_ms: Option<i64>,
}

/// A message that a client publishes.
#[derive(Debug)]
pub struct Publication {
    pub message: Arc<Message>,
    /// Quality of service between the publisher and the server.
    pub qos: Quality,
    /// The server keeps the message for later subscribers.
    pub retain: bool,
    /// The tenant of the publisher.
    pub tenant: uuid::Uuid,
    /// The session of the publisher, if it has one: a subscription with No Local does not get the message.
    pub publisher: Option<u64>,
}

/// A message for one subscriber.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) message: Arc<Message>,
    pub(super) qos: Quality,
    pub(super) retain: bool,
    /// Subscription identifiers.
    pub(super) identifiers: Vec<u32>,
    /// The stored call that the message is, if it is one.
    pub(super) call: Option<CallOf>,
    /// The whole filter of the shared subscription that selected the message, `$share/GROUP/FILTER`. In memory only messages of
    /// sessions that do not outlive their connections have it; the engine has it for the others.
    pub(super) share: Option<Arc<str>>,
}

/// A message of QoS 1 or 2 that a shared subscription has selected. Another member may take it over.
#[derive(Debug, Clone)]
pub(super) struct GroupMessage {
    pub(super) message: Arc<Message>,
    pub(super) qos: Quality,
    pub(super) retain: bool,
    /// See [`Delivery::share`].
    pub(super) share: Arc<str>,
}

impl GroupMessage {
    /// The message of a delivery, if a shared subscription has selected it.
    pub(super) fn of(delivery: &Delivery) -> Option<Self> {
        let share = delivery.share.clone()?;
        let Delivery { qos, retain, .. } = *delivery;
        Some(Self { message: Arc::clone(&delivery.message), qos, retain, share })
    }
}

/// A stored call: its device, which may be behind a gateway, and its number.
pub type CallOf = (uuid::Uuid, i32);

/// A message of the server for one client.
#[derive(Debug, Clone, Copy)]
pub struct ToClient<'a> {
    /// The message.
    pub content: Content<'a>,
    /// Quality of service.
    pub qos: Quality,
    /// A stored call. [`Acknowledged`](super::Acknowledged) has it when the client has acknowledged the message.
    pub call: Option<CallOf>,
}

/// Counts the bytes of all messages in memory, and of the places that they take in queues, together and for each tenant.
#[derive(Debug, Default)]
pub(super) struct MemoryAccount {
    bytes: Arc<AtomicUsize>,
    by_tenant: RwLock<HashMap<Uuid, Arc<TenantAccount>>>,
}

/// What one tenant has of the bytes.
#[derive(Debug)]
struct TenantAccount {
    bytes: AtomicUsize,
    all: Arc<AtomicUsize>,
}

/// Bytes that count until they are dropped.
#[derive(Debug)]
pub(super) struct CountedBytes {
    account: Arc<TenantAccount>,
    bytes: usize,
}

impl MemoryAccount {
    /// Makes a message of a tenant from its parts.
    pub(super) fn message(&self, tenant: Uuid, content: Content<'_>) -> Arc<Message> {
        let Content { topic, payload, properties, expires_at_ms } = content;
        let bytes = size_of::<Message>() + topic.len() + payload.len() + properties.len();
        let held = self.count(tenant, bytes);
        Arc::new(Message {
            topic: topic.into(),
            payload: payload.into(),
            properties: properties.into(),
            expires_at_ms,
            held,
        })
    }

    /// Counts bytes of a tenant.
    fn count(&self, tenant: Uuid, bytes: usize) -> CountedBytes {
        let account = self.account(tenant);
        account.bytes.fetch_add(bytes, Ordering::Relaxed);
        account.all.fetch_add(bytes, Ordering::Relaxed);
        CountedBytes { account, bytes }
    }

    /// Sets what a session of a tenant has counted.
    pub(super) fn set(&self, tenant: Uuid, counted: &mut Option<CountedBytes>, bytes: usize) {
        if counted.as_ref().map_or(0, |counted| counted.bytes) != bytes {
            *counted = (bytes > 0).then(|| self.count(tenant, bytes));
        }
    }

    /// The bytes of a tenant.
    pub(super) fn bytes_of(&self, tenant: Uuid) -> usize {
        self.by_tenant.read().get(&tenant).map_or(0, |account| account.bytes.load(Ordering::Relaxed))
    }

    /// Forgets tenants that do not exist any more and have nothing here.
    pub(super) fn forget_tenants(&self, exists: &dyn Fn(Uuid) -> bool) {
        let is_kept =
            |tenant: &Uuid, account: &Arc<TenantAccount>| Arc::strong_count(account) > 1 || exists(*tenant);
        self.by_tenant.write().retain(|tenant, account| is_kept(tenant, account));
    }

    fn account(&self, tenant: Uuid) -> Arc<TenantAccount> {
        if let Some(account) = self.by_tenant.read().get(&tenant) {
            return Arc::clone(account);
        }
        let new = || Arc::new(TenantAccount { bytes: AtomicUsize::new(0), all: Arc::clone(&self.bytes) });
        Arc::clone(self.by_tenant.write().entry(tenant).or_insert_with(new))
    }

    /// The bytes that are counted.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.account.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Message {
    /// Bytes that the message takes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.held.bytes as u64
    }

    /// Whether the message must not be delivered any more [MQTT-3.3.2-5].
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|expires_at_ms| now_ms >= expires_at_ms)
    }

    /// The parts of the message.
    pub fn content(&self) -> Content<'_> {
        Content {
            topic: &self.topic,
            payload: &self.payload,
            properties: &self.properties,
            expires_at_ms: self.expires_at_ms,
        }
    }
}
