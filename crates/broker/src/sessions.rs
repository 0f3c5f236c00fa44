//! Sessions begin, continue, and end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kv::WriteBatch;
use uuid::Uuid;

use super::broker::{Broker, SESSIONS};
use super::ended::EndedSession;
use super::error::BrokerError;
use super::record::{SessionRecord, number_key};
use super::session::{Connection, Session, SessionKey, State};
use model::Wake;

/// A client that connects.
pub struct Attach<'a> {
    pub tenant: Uuid,
    pub device: Uuid,
    pub client_id: &'a str,
    /// The client wants a new session.
    pub clean_start: bool,
    /// Seconds that the session outlives the connection.
    pub expiry_s: u32,
    /// The Receive Maximum of the client.
    pub inflight_max: u16,
    /// Wakes the connection.
    pub wake: Arc<dyn Wake>,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// The session of a client that has connected.
#[derive(Debug, Clone)]
pub struct Attached {
    pub session: Arc<Session>,
    /// Distinguishes the connection from earlier ones of the session.
    pub connection: u64,
}

impl Broker {
    /// Continues or begins the session of a client that outlives its connection. Returns `None` for a client without such a
    /// session; [`begin`](Self::begin) makes one when the client subscribes. The flag indicates whether the session is an earlier one.
    ///
    /// # Errors
    /// [`BrokerError::Limit`] if there are too many sessions.
    pub fn attach(&self, client: &Attach<'_>) -> Result<(Option<Attached>, bool), BrokerError> {
        let key = SessionKey { device: client.device, client_id: client.client_id.into() };
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get(&key).cloned() {
            let mut state = session.state.lock();
            if !client.clean_start && !state.is_expired(client.now_ms) {
                let attached = self.connect(&session, &mut state, client);
                return Ok((Some(attached), true));
            }
            self.end_locked(&session, &mut state);
            sessions.remove(&key);
        }
        if client.expiry_s == 0 {
            return Ok((None, false));
        }
        sessions.check_room(client.device, client.tenant, &*self.shares)?;
        let (session, attached) = self.make(client, key, true);
        sessions.insert(session);
        Ok((Some(attached), false))
    }

    /// Begins the session of a client without one. It ends with the connection.
    pub fn begin(&self, client: &Attach<'_>) -> Attached {
        let key = SessionKey { device: client.device, client_id: client.client_id.into() };
        self.make(client, key, false).1
    }

    fn make(&self, client: &Attach<'_>, key: SessionKey, is_durable: bool) -> (Arc<Session>, Attached) {
        let id = self.next_session.fetch_add(1, Ordering::Relaxed);
        let session = Arc::new(Session::new(id, client.tenant, key, is_durable, State::default()));
        let attached = self.connect(&session, &mut session.state.lock(), client);
        (session, attached)
    }

    fn connect(&self, session: &Arc<Session>, state: &mut State, client: &Attach<'_>) -> Attached {
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let wake = Arc::clone(&client.wake);
        let connection = Connection { number, wake, inflight_max: client.inflight_max };
        self.set_connection(session, state, Some(connection));
        state.expiry_s = client.expiry_s;
        if session.is_durable {
            state.queue.return_to_store();
            self.count_places(session.tenant, state);
            self.record(session, state, 0);
        }
        session.take_signal();
        session.signal(state);
        Attached { session: Arc::clone(session), connection: number }
    }

    /// The connection of a session has ended. `expiry_s` replaces the expiry of the session.
    pub fn detach(&self, attached: &Attached, expiry_s: u32, now_ms: i64) {
        let session = &attached.session;
        let mut sessions = self.sessions.lock();
        let mut state = session.state.lock();
        if state.connection.as_ref().is_none_or(|connection| connection.number != attached.connection) {
            return;
        }
        self.set_connection(session, &mut state, None);
        state.expiry_s = expiry_s;
        state.left_at_ms = now_ms;
        state.retained = Vec::new();
        if session.is_durable && expiry_s > 0 {
            state.queue.return_to_store();
            self.count_places(session.tenant, &mut state);
            self.record(session, &state, now_ms);
        } else {
            self.end_locked(session, &mut state);
            // Another session may have the key of one that is not durable.
            if session.is_durable {
                sessions.remove(&session.key);
            }
        }
    }

    /// Writes the record of a session that has one. If the engine does not take it, a restart only changes when the session
    /// expires, or continues one that has ended.
    fn record(&self, session: &Session, state: &State, left_at_ms: i64) {
        if state.is_recorded {
            let mut write = WriteBatch::new();
            write.put(SESSIONS, number_key(session.id()), self.session_record(session, state, left_at_ms));
            drop(self.kv.commit(&write));
        }
    }

    pub(super) fn session_record(&self, session: &Session, state: &State, left_at_ms: i64) -> Vec<u8> {
        let SessionKey { device, client_id } = &session.key;
        let (tenant, device, client_id) = (session.tenant, *device, client_id.clone());
        SessionRecord { tenant, device, client_id, expiry_s: state.expiry_s, left_at_ms }.encode()
    }

    /// Ends sessions that have expired or whose device is gone, and deletes what the engine has of tenants that are gone.
    /// [`redistribute`](Self::redistribute) does the rest for the sessions.
    pub fn sweep(
        &self,
        now_ms: i64,
        device_exists: &dyn Fn(Uuid) -> bool,
        tenant_exists: &dyn Fn(Uuid) -> bool,
    ) {
        // The lock is free again before the loop: ending a session takes it.
        let all = self.sessions.lock().all();
        for session in all {
            let is_over = {
                let state = session.state.lock();
                state.is_expired(now_ms) || state.connection.is_none() && !device_exists(session.key.device)
            };
            if is_over {
                self.end(&session, now_ms, device_exists);
            }
        }
        if let Err(error) = self.forget_tenants(tenant_exists) {
            tracing::warn!(%error, "retained messages of deleted tenants are still there; the next sweep tries again");
        }
    }

    fn end(&self, session: &Arc<Session>, now_ms: i64, device_exists: &dyn Fn(Uuid) -> bool) {
        let mut sessions = self.sessions.lock();
        let mut state = session.state.lock();
        // The client may have come back meanwhile.
        let is_absent = state.connection.is_none();
        if is_absent && (state.is_expired(now_ms) || !device_exists(session.key.device)) {
            self.end_locked(session, &mut state);
            sessions.remove(&session.key);
        }
    }

    /// Ends a session. What is left of it is handled in steps, by [`redistribute`](Self::redistribute).
    fn end_locked(&self, session: &Session, state: &mut State) {
        state.has_ended = true;
        let index = self.index_of(session.tenant);
        let mut index = index.write();
        for (filter, _) in state.subscriptions.drain() {
            self.remove_from(&mut index, session, &filter);
        }
        drop(index);
        self.set_connection(session, state, None);
        // The mark of an ended session.
        state.expiry_s = 0;
        self.record(session, state, state.left_at_ms);
        let ended = std::mem::replace(state, State { has_ended: true, ..State::default() });
        let is_stored = ended.is_recorded || session.is_durable && !ended.queue.is_all_done();
        let rest = ended.queue.end(session.is_durable);
        if is_stored || !rest.in_memory.is_empty() {
            self.ended.add([EndedSession::new(session, is_stored, rest)]);
        }
    }
}
