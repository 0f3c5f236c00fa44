//! The broker: who has subscribed to what, and what waits for whom.
//!
//! Invariant 1: what the engine holds of sessions, subscriptions, queues and retained messages is enough to continue after a
//! crash: [`Broker::open`] rebuilds the rest.
//! Invariant 2: a message for a durable session is in the engine before it is in memory, and is sent when it is durable there.
//! Invariant 3: numbers of a queue are taken, written and added to memory under the lock `order`, so memory has them in order.
//! Invariant 4: locks are taken in this order: `sessions`, `order`, the state of a session, an index, the others.
//! Invariant 5: an ended session is in `ended`, or somebody handles it, until the engine has nothing of it and each message of a
//! shared subscription that its client has not acknowledged is in the queue of another member, expired, or a dead letter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kv::{Direction, KeyRange, KeyValueStore, Space, WriteBatch};
use model::limits::Portion;
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::ended::{EndedSession, EndedSessions};
use super::error::BrokerError;
use super::held_subscriptions::HeldSubscriptions;
use super::index::{Subscriber, SubscriptionIndex};
use super::limits;
use super::message::{Content, MemoryAccount, Message};
use super::metrics::BrokerMetrics;
use super::queue::Queue;
use super::record::{
    QueueRecord, SessionRecord, read_number_key, read_queue_key, read_subscription_key, retained_key,
};
use super::retained::{BrokerReadError, RETAINED, RetainedSizes};
use super::session::{Connection, Session, SessionKey, State};
use super::session_map::SessionMap;
use super::shared::{CONTENTS, SharedContents};
use super::subscription::SubscriptionOptions;
use super::system::SystemReport;
use super::tenant_shares::{Shared, TenantShares, TenantUse};

/// Sessions that outlive their connections.
pub(super) const SESSIONS: Space = Space::new("mqtt_sessions");
/// Their subscriptions.
pub(super) const SUBSCRIPTIONS: Space = Space::new("mqtt_subscriptions");
/// Their messages of QoS 1 and 2.
pub(super) const QUEUES: Space = Space::new("mqtt_queues");

/// The broker of all tenants.
pub struct Broker {
    pub(super) kv: Arc<dyn KeyValueStore>,
    pub(super) memory: MemoryAccount,
    /// Above this many bytes of messages and their places in queues sessions on disk read from there, and others drop.
    pub(super) memory_bytes_max: usize,
    pub(super) indexes: RwLock<HashMap<Uuid, Arc<RwLock<SubscriptionIndex>>>>,
    /// Sessions that outlive their connections.
    pub(super) sessions: Mutex<SessionMap>,
    /// How many of them have a connection.
    pub(super) durable_connected: AtomicUsize,
    pub(super) next_session: AtomicU64,
    pub(super) next_connection: AtomicU64,
    pub(super) shared: SharedContents,
    pub(super) ended: EndedSessions,
    pub(super) held_subscriptions: HeldSubscriptions,
    pub(super) shares: Arc<dyn TenantShares>,
    /// See invariant 3. It holds the sizes of the retained messages, which change under the same lock.
    pub(super) order: Mutex<RetainedSizes>,
    pub(super) metrics: Arc<BrokerMetrics>,
    /// The last counters under `$SYS`.
    pub(super) system: Mutex<SystemReport>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

/// What the engine has of the queue of a session.
#[derive(Debug, Clone, Copy)]
struct Stored {
    first: u64,
    end: u64,
    messages: u64,
    bytes: u64,
}

impl Broker {
    /// Opens the broker on an engine, with bounds that fit the memory of this machine. The tenants share them as `shares` says. `now_ms` is the time at which sessions that had a connection have lost it.
    pub fn open(
        kv: Arc<dyn KeyValueStore>,
        metrics: Arc<BrokerMetrics>,
        memory: Portion,
        shares: Arc<dyn TenantShares>,
        now_ms: i64,
    ) -> Result<Self, BrokerError> {
        let sizes = RetainedSizes::read(&*kv)?;
        let broker = Self {
            kv,
            memory: MemoryAccount::default(),
            memory_bytes_max: memory.of(limits::MEMORY_BYTES_MAX),
            indexes: RwLock::default(),
            sessions: Mutex::default(),
            durable_connected: AtomicUsize::new(0),
            next_session: AtomicU64::new(1),
            next_connection: AtomicU64::new(1),
            shared: SharedContents::default(),
            ended: EndedSessions::default(),
            held_subscriptions: HeldSubscriptions::new(memory.of(limits::SUBSCRIPTIONS_MAX)),
            shares,
            order: Mutex::new(sizes),
            metrics,
            system: Mutex::default(),
        };
        broker.restore(now_ms)?;
        broker.drop_unneeded_contents()?;
        Ok(broker)
    }

    /// A message of a tenant with these parts.
    pub fn message(&self, tenant: Uuid, content: Content<'_>) -> Arc<Message> {
        self.memory.message(tenant, content)
    }

    /// What a tenant has here, and what it may have: its shares of what the tenants share.
    pub fn tenant_use(&self, tenant: Uuid) -> (TenantUse, TenantUse) {
        let (sessions, all_sessions) = {
            let sessions = self.sessions.lock();
            (sessions.len_of(tenant), sessions.len())
        };
        let (subscriptions, all_subscriptions, subscriptions_max) = self.held_subscriptions.of_tenant(tenant);
        let (memory, all_memory) = (self.memory.bytes_of(tenant), self.memory.bytes());
        let retained = self.order.lock().of(tenant);
        let most = |of, max: usize, own: usize, all: usize| {
            self.shares.most(tenant, of, max as u64, all.saturating_sub(own) as u64)
        };
        let used = TenantUse {
            sessions: sessions as u64,
            subscriptions: subscriptions as u64,
            memory_bytes: memory as u64,
            retained_topics: retained.topics,
            retained_bytes: retained.bytes,
        };
        let limits = TenantUse {
            sessions: most(Shared::Sessions, limits::SESSIONS_MAX, sessions, all_sessions),
            subscriptions: most(Shared::Subscriptions, subscriptions_max, subscriptions, all_subscriptions),
            memory_bytes: most(Shared::MemoryBytes, self.memory_bytes_max, memory, all_memory),
            retained_topics: limits::RETAINED_TOPICS_MAX,
            retained_bytes: limits::RETAINED_BYTES_MAX,
        };
        (used, limits)
    }

    /// Calls `watcher` whenever the engine makes progress or has room again.
    pub fn watch(&self, watcher: Arc<dyn kv::ProgressWatcher>) {
        self.kv.watch(watcher);
    }

    /// The progress of the engine.
    pub fn progress(&self) -> kv::Progress {
        self.kv.progress()
    }

    /// Sets the gauges.
    pub fn measure(&self) {
        let metrics = &self.metrics;
        metrics.sessions.set(self.sessions.lock().len() as i64);
        metrics.subscriptions.set(self.subscriptions() as i64);
        metrics.retained.set(self.order.lock().topics() as i64);
        metrics.memory_bytes.set(self.memory.bytes() as i64);
    }

    /// Subscriptions of all sessions.
    pub(super) fn subscriptions(&self) -> usize {
        self.indexes.read().values().map(|index| index.read().len()).sum()
    }

    /// Sets the connection of a session, and counts it.
    pub(super) fn set_connection(
        &self,
        session: &Session,
        state: &mut State,
        connection: Option<Connection>,
    ) {
        let (was, is) = (state.connection.is_some(), connection.is_some());
        session.set_connection(state, connection);
        if session.is_durable && is && !was {
            self.durable_connected.fetch_add(1, Ordering::Relaxed);
        } else if session.is_durable && was && !is {
            self.durable_connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Counts the memory that the queue of a session takes.
    pub(super) fn count_places(&self, tenant: Uuid, state: &mut State) {
        self.memory.set(tenant, &mut state.counted, state.queue.place_bytes());
    }

    /// A client has connected to the door of the broker.
    pub fn client_connected(&self) {
        let connected = self.metrics.clients.inc() + 1;
        self.metrics.clients_max.fetch_max(connected.max(0) as u64, Ordering::Relaxed);
    }

    /// The connection of a client has ended.
    pub fn client_left(&self) {
        self.metrics.clients.dec();
    }

    /// Deletes retained messages of tenants that do not exist any more: at most [`limits::FORGOTTEN_PER_SWEEP`] of each.
    pub(super) fn forget_tenants(&self, exists: &dyn Fn(Uuid) -> bool) -> Result<(), BrokerError> {
        self.memory.forget_tenants(exists);
        let mut sizes = self.order.lock();
        for tenant in sizes.tenants().filter(|tenant| !exists(*tenant)).collect::<Vec<_>>() {
            let mut write = WriteBatch::new();
            let range = KeyRange::prefix(retained_key(tenant, ""));
            let found = self.kv.scan(RETAINED, &range, Direction::Ascending)?;
            for entry in found.take(limits::FORGOTTEN_PER_SWEEP) {
                write.delete(RETAINED, entry?.0);
            }
            if write.is_empty() {
                sizes.forget(tenant);
            } else {
                self.kv.commit(&write)?;
            }
        }
        Ok(())
    }

    fn restore(&self, now_ms: i64) -> Result<(), BrokerError> {
        let stored = self.stored_queues()?;
        let (records, ended) = self.stored_sessions()?;
        let ids = records.keys().chain(stored.keys()).copied().chain(ended.iter().map(|ended| ended.id));
        self.next_session.store(ids.max().map_or(1, |last| last + 1), Ordering::Relaxed);
        let ended_ids: HashSet<u64> = ended.iter().map(|ended| ended.id).collect();
        let orphans = stored.keys().filter(|id| !records.contains_key(id) && !ended_ids.contains(id));
        self.ended.add(orphans.copied().map(EndedSession::without_record));
        self.ended.add(ended);
        let mut by_id = HashMap::new();
        for (id, record) in records {
            let queue = stored
                .get(&id)
                .map(|stored| Queue::stored(stored.first, stored.end, stored.messages, stored.bytes));
            let left_at_ms = if record.left_at_ms == 0 { now_ms } else { record.left_at_ms };
            let state = State {
                expiry_s: record.expiry_s,
                left_at_ms,
                is_recorded: true,
                queue: queue.unwrap_or_default(),
                ..State::default()
            };
            by_id.insert(id, Arc::new(Session::new(id, record.tenant, record.key(), true, state)));
        }
        for entry in self.scan_all(SUBSCRIPTIONS)? {
            let (key, value) = entry?;
            let (id, filter) = read_subscription_key(&key).map_err(BrokerReadError::from)?;
            let options = SubscriptionOptions::from_record(&value).map_err(BrokerReadError::from)?;
            let Some(session) = by_id.get(&id) else { continue };
            session.state.lock().subscriptions.insert(filter.into(), options);
            let index = self.index_of(session.tenant);
            if index.write().put(filter, Subscriber { session: Arc::clone(session), options }) {
                self.held_subscriptions.add_stored(session, filter);
            }
        }
        let mut sessions = self.sessions.lock();
        by_id.into_values().for_each(|session| sessions.insert(session));
        Ok(())
    }

    /// The records of the sessions by number, and those that have ended: they are marked by the expiry 0, or a later one has their key.
    fn stored_sessions(&self) -> Result<(BTreeMap<u64, SessionRecord>, Vec<EndedSession>), BrokerError> {
        let (mut records, mut ended) = (BTreeMap::new(), Vec::new());
        let mut last = HashMap::new();
        for entry in self.scan_all(SESSIONS)? {
            let (key, value) = entry?;
            let id = read_number_key(&key).map_err(BrokerReadError::from)?;
            let record = SessionRecord::decode(&value).map_err(BrokerReadError::from)?;
            if record.expiry_s == 0 {
                ended.push(record.ended(id));
                continue;
            }
            // Numbers ascend.
            let earlier = last.insert(record.key(), id).and_then(|id| Some((id, records.remove(&id)?)));
            ended.extend(earlier.map(|(id, earlier): (u64, SessionRecord)| earlier.ended(id)));
            records.insert(id, record);
        }
        Ok((records, ended))
    }

    /// Counts what the engine has of each queue.
    fn stored_queues(&self) -> Result<HashMap<u64, Stored>, BrokerError> {
        let mut queues: HashMap<u64, Stored> = HashMap::new();
        for entry in self.scan_all(QUEUES)? {
            let (key, value) = entry?;
            let (id, number) = read_queue_key(&key).map_err(BrokerReadError::from)?;
            if let QueueRecord::Reference(reference) =
                QueueRecord::decode(&value).map_err(BrokerReadError::from)?
            {
                self.shared.count(reference.shared);
            }
            let empty = Stored { first: number, end: number, messages: 0, bytes: 0 };
            let stored = queues.entry(id).or_insert(empty);
            stored.end = number + 1;
            stored.messages += 1;
            stored.bytes += value.len() as u64;
        }
        Ok(queues)
    }

    /// Deletes contents that no queue needs: the process ended between the deletion of a message and that of its content.
    fn drop_unneeded_contents(&self) -> Result<(), BrokerError> {
        let mut write = WriteBatch::new();
        for entry in self.scan_all(CONTENTS)? {
            let (key, _) = entry?;
            let id = read_number_key(&key).map_err(BrokerReadError::from)?;
            if !self.shared.is_needed(id) {
                write.delete(CONTENTS, key);
            }
        }
        if !write.is_empty() {
            self.kv.commit(&write)?;
        }
        Ok(())
    }

    fn scan_all(&self, space: Space) -> Result<kv::Scan, kv::KvError> {
        self.kv.scan(space, &KeyRange::all(), Direction::Ascending)
    }
}

impl SessionRecord {
    fn key(&self) -> SessionKey {
        SessionKey { device: self.device, client_id: self.client_id.clone() }
    }

    fn ended(&self, id: u64) -> EndedSession {
        EndedSession::stored(id, self.tenant, self.key())
    }
}
