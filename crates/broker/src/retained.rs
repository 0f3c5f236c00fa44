//! Retained messages: the last message of a topic, for later subscribers.

use std::collections::HashMap;
use std::sync::Arc;

use kv::{Direction, KeyRange, KeyValueStore, KvError, Space, WriteBatch};
use uuid::Uuid;

use super::limits;
use super::message::{Delivery, MemoryAccount, Message, Publication};
use super::record::{MessageRecord, QueueRecord, read_retained_key, retained_key};
use super::subscription::{Quality, SubscriptionOptions};
use model::topic::{literal_prefix, matches};

/// Retained messages by tenant and topic.
pub(super) const RETAINED: Space = Space::new("mqtt_retained");

/// A new subscription on its way through the retained messages.
#[derive(Debug, Clone)]
pub(super) struct RetainedCursor {
    filter: Box<str>,
    options: SubscriptionOptions,
    /// The key of the last topic that was compared.
    after: Option<kv::Key>,
}

/// Sizes of the retained messages of each tenant.
#[derive(Debug, Default)]
pub(super) struct RetainedSizes {
    by_tenant: HashMap<Uuid, Size>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) topics: u64,
    pub(super) bytes: u64,
}

/// The result of one step of a cursor.
pub(super) struct Step {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) is_finished: bool,
}

impl RetainedCursor {
    pub(super) fn new(filter: &str, options: SubscriptionOptions) -> Self {
        Self { filter: filter.into(), options, after: None }
    }

    /// The filter of the subscription.
    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Reads the next topics. The number of topics and bytes of a step is bounded.
    pub(super) fn step(
        &mut self,
        kv: &dyn KeyValueStore,
        tenant: Uuid,
        memory: &MemoryAccount,
        now_ms: i64,
    ) -> Result<Step, BrokerReadError> {
        let prefix = retained_key(tenant, literal_prefix(&self.filter));
        let mut range = KeyRange::prefix(prefix);
        if let Some(after) = &self.after {
            range = range.after(after);
        }
        let mut step = Step { deliveries: Vec::new(), is_finished: true };
        let (mut topics, mut bytes) = (0, 0);
        let mut last = None;
        for entry in kv.scan(RETAINED, &range, Direction::Ascending)? {
            let (key, value) = entry?;
            if topics >= limits::RETAINED_STEP_TOPICS || bytes >= limits::RETAINED_STEP_BYTES {
                step.is_finished = false;
                break;
            }
            topics += 1;
            let (_, topic) = read_retained_key(&key)?;
            if matches(&self.filter, topic)
                && let QueueRecord::Message(record) = QueueRecord::decode(&value)?
            {
                bytes += value.len();
                let message = memory.message(tenant, record.content);
                step.deliveries.extend(self.delivery(record.qos, message, now_ms));
            }
            last = Some(key);
        }
        self.after = last.or(self.after.take());
        Ok(step)
    }

    fn delivery(&self, qos: Quality, message: Arc<Message>, now_ms: i64) -> Option<Delivery> {
        let identifiers = self.options.identifier.map(u32::from).into_iter().collect();
        let qos = qos.min(self.options.qos);
        let delivery = Delivery { qos, retain: true, identifiers, message, call: None, share: None };
        (!delivery.message.is_expired(now_ms)).then_some(delivery)
    }
}

/// A record of the broker cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BrokerReadError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] KvError),
    /// The record has another form.
    #[error(transparent)]
    Record(#[from] super::record::RecordError),
}

/// The changes of retained messages in one write, which take effect when the engine has taken it.
#[derive(Debug, Default)]
pub(super) struct RetainedDraft {
    sizes: HashMap<Uuid, Size>,
    /// Bytes of the records that the write changes, by key; 0 for a removed one.
    changed: HashMap<Vec<u8>, u64>,
}

impl RetainedDraft {
    /// Adds a retained message to a write. A message without payload removes the one of its topic [MQTT-3.3.1-6]. Returns the
    /// reason if a limit refuses it.
    pub(super) fn keep(
        &mut self,
        publication: &Publication,
        kv: &dyn KeyValueStore,
        sizes: &RetainedSizes,
        write: &mut WriteBatch,
    ) -> Result<Option<String>, KvError> {
        let message = &publication.message;
        let key = retained_key(publication.tenant, &message.topic);
        let old = match self.changed.get(&key) {
            Some(bytes) => *bytes,
            None => kv.get(RETAINED, &key)?.map_or(0, |old| (key.len() + old.len()) as u64),
        };
        let before = self.sizes.get(&publication.tenant).copied().unwrap_or(sizes.of(publication.tenant));
        let mut size = Size { topics: before.topics - u64::from(old > 0), bytes: before.bytes - old };
        if message.payload.is_empty() {
            write.delete(RETAINED, key.clone());
            self.changed.insert(key, 0);
        } else {
            let (qos, content) = (publication.qos, message.content());
            let value =
                MessageRecord { qos, retain: true, identifiers: Vec::new(), share: None, content }.encode();
            let bytes = (key.len() + value.len()) as u64;
            size = Size { topics: size.topics + 1, bytes: size.bytes + bytes };
            if let Some(refusal) = size.refusal() {
                return Ok(Some(refusal));
            }
            write.put(RETAINED, key.clone(), value);
            self.changed.insert(key, bytes);
        }
        self.sizes.insert(publication.tenant, size);
        Ok(None)
    }

    /// Records that the engine has taken the write.
    pub(super) fn apply(self, sizes: &mut RetainedSizes) {
        sizes.by_tenant.extend(self.sizes);
    }
}

impl RetainedSizes {
    /// Counts the retained messages of the engine.
    pub(super) fn read(kv: &dyn KeyValueStore) -> Result<Self, BrokerReadError> {
        let mut sizes = Self::default();
        for entry in kv.scan(RETAINED, &KeyRange::all(), Direction::Ascending)? {
            let (key, value) = entry?;
            let (tenant, _) = read_retained_key(&key)?;
            let size = sizes.by_tenant.entry(tenant).or_default();
            size.topics += 1;
            size.bytes += (key.len() + value.len()) as u64;
        }
        Ok(sizes)
    }

    /// The size of the retained messages of a tenant.
    pub(super) fn of(&self, tenant: Uuid) -> Size {
        self.by_tenant.get(&tenant).copied().unwrap_or_default()
    }

    /// Retained topics of all tenants.
    pub(super) fn topics(&self) -> u64 {
        self.by_tenant.values().map(|size| size.topics).sum()
    }

    /// The tenants with retained messages.
    pub(super) fn tenants(&self) -> impl Iterator<Item = Uuid> {
        self.by_tenant.keys().copied()
    }

    pub(super) fn forget(&mut self, tenant: Uuid) {
        self.by_tenant.remove(&tenant);
    }
}

impl Size {
    fn refusal(self) -> Option<String> {
        let (topics_max, bytes_max) = (limits::RETAINED_TOPICS_MAX, limits::RETAINED_BYTES_MAX);
        if self.topics > topics_max {
            return Some(format!(
                "the tenant would have {} retained topics, the limit is {topics_max}",
                self.topics
            ));
        }
        let bytes = self.bytes;
        (bytes > bytes_max).then(|| {
            format!("the retained messages of the tenant would take {bytes} bytes, the limit is {bytes_max}")
        })
    }
}
