//! The session of a client towards the broker: its subscriptions and its queue.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use uuid::Uuid;

use super::message::CountedBytes;
use super::queue::Queue;
use super::retained::RetainedCursor;
use super::subscription::SubscriptionOptions;
use model::Wake;

/// Names a session: client identifiers are unique only within a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// Identity of the device.
    pub device: Uuid,
    pub client_id: Box<str>,
}

/// The session of a client.
pub struct Session {
    id: u64,
    pub(super) tenant: Uuid,
    pub(super) key: SessionKey,
    /// The session outlives its connections, and its state is in the key-value engine.
    pub(super) is_durable: bool,
    /// Something waits and the connection was woken. It saves wakes.
    signalled: AtomicBool,
    /// The session has a connection.
    connected: AtomicBool,
    pub(super) state: Mutex<State>,
}

/// The state of a session.
#[derive(Default)]
pub(super) struct State {
    pub(super) connection: Option<Connection>,
    pub(super) subscriptions: HashMap<Box<str>, SubscriptionOptions>,
    pub(super) queue: Queue,
    /// What the queue takes besides the messages.
    pub(super) counted: Option<CountedBytes>,
    /// Subscriptions whose retained messages were not all sent.
    pub(super) retained: Vec<RetainedCursor>,
    /// Seconds that the session outlives a connection.
    pub(super) expiry_s: u32,
    /// When the last connection ended, in milliseconds since the epoch.
    pub(super) left_at_ms: i64,
    /// The engine has a record of the session.
    pub(super) is_recorded: bool,
    /// The session has ended; nothing may be added to it.
    pub(super) has_ended: bool,
}

/// The connection of a session.
pub(super) struct Connection {
    /// Distinguishes the connection from earlier ones.
    pub(super) number: u64,
    pub(super) wake: Arc<dyn Wake>,
    /// The Receive Maximum of the client.
    pub(super) inflight_max: u16,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(id: u64, tenant: Uuid, key: SessionKey, is_durable: bool, state: State) -> Self {
        let (signalled, connected) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { id, tenant, key, is_durable, signalled, connected, state: Mutex::new(state) }
    }

    /// Identity of the session, unique in the broker.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the session has a connection. It may change at any time.
    pub(super) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Sets the connection of the session.
    pub(super) fn set_connection(&self, state: &mut State, connection: Option<Connection>) {
        self.connected.store(connection.is_some(), Ordering::Relaxed);
        state.connection = connection;
    }

    /// Wakes the connection unless it was woken already.
    pub(super) fn signal(&self, state: &State) {
        if let Some(connection) = &state.connection
            && !self.signalled.swap(true, Ordering::AcqRel)
        {
            connection.wake.wake();
        }
    }

    /// The connection begins to take what waits: later additions wake it again.
    pub(super) fn take_signal(&self) {
        self.signalled.store(false, Ordering::Release);
    }
}

impl State {
    /// Whether the session has outlived its last connection by its expiry.
    pub(super) fn is_expired(&self, now_ms: i64) -> bool {
        self.connection.is_none() && now_ms >= self.left_at_ms + 1_000 * i64::from(self.expiry_s)
    }
}
