//! Messages leave the queue of a session for its connection, and the client acknowledges them.

use std::sync::Arc;

use kv::{Direction, KeyRange, WriteBatch};
use uuid::Uuid;

use super::broker::{Broker, QUEUES};
use super::error::BrokerError;
use super::limits;
use super::message::{CallOf, Delivery, Message};
use super::queue::{Done, IdleReason, Outgoing, Sent, Waiting};
use super::record::{QueueRecord, RecordError, number_key, queue_key, read_queue_key};
use super::retained::{BrokerReadError, RetainedCursor};
use super::session::{Session, State};
use super::sessions::Attached;
use super::shared::CONTENTS;

/// Deletions of acknowledged messages that the engine has not taken yet.
#[derive(Debug, Default)]
pub struct Acknowledged {
    write: WriteBatch,
    calls: Vec<CallOf>,
}

impl Acknowledged {
    /// The stored calls that clients have acknowledged since the last time, with their devices.
    pub fn take_calls(&mut self) -> Vec<CallOf> {
        std::mem::take(&mut self.calls)
    }
}

/// Why the connection cannot get a further packet now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// Nothing waits, or the client must acknowledge or read first. The session wakes the connection for new messages; after
    /// an ack, and when the output has room, the connection must ask again.
    All,
    /// The next message is not durable yet. Ask again when the engine has made progress.
    Undurable,
    /// The connection has got its share of this pass. Ask again in the next one.
    Again,
}

/// The effect of PUBREC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PubrecEffect {
    /// PUBREL follows when it may.
    Known,
    /// No message in flight has the identifier.
    Unknown,
}

/// Steps of one pass: loads from the engine, and parts of retained messages.
const STEPS_PER_TURN: usize = 4;

impl Broker {
    /// Passes what waits for a connection to `send`.
    pub fn deliver(
        &self,
        attached: &Attached,
        now_ms: i64,
        acknowledged: &mut Acknowledged,
        send: &mut dyn FnMut(&Outgoing<'_>) -> Sent,
    ) -> Result<Delivered, BrokerError> {
        let session = &attached.session;
        session.take_signal();
        let mut send = |packet: &Outgoing<'_>| {
            let sent = send(packet);
            if sent == Sent::Yes && matches!(packet, Outgoing::Publish { .. }) {
                self.metrics.delivered.inc();
            }
            sent
        };
        for _ in 0..STEPS_PER_TURN {
            let mut done = Vec::new();
            let mut state = session.state.lock();
            let Some(connection) = &state.connection else { return Ok(Delivered::All) };
            if connection.number != attached.connection {
                return Ok(Delivered::All);
            }
            let inflight_max = connection.inflight_max;
            let durable = self.kv.progress().durable;
            let rest = state.queue.send(inflight_max, now_ms, durable, &mut done, &mut send);
            done.into_iter().for_each(|done| self.finish(session, done, acknowledged));
            state.queue.free_places();
            self.count_places(session.tenant, &mut state);
            match rest {
                IdleReason::Client => return Ok(Delivered::All),
                IdleReason::Undurable => return Ok(Delivered::Undurable),
                IdleReason::InStore { from } => self.load(session, &mut state, from)?,
                IdleReason::Nothing => {
                    let Some(cursor) = state.retained.pop() else {
                        // Subscriptions come at the begin of a session; its rest needs no room for cursors.
                        state.retained = Vec::new();
                        return Ok(Delivered::All);
                    };
                    drop(state);
                    self.send_retained(session, cursor, now_ms)?;
                }
            }
        }
        Ok(Delivered::Again)
    }

    /// The client acknowledges a message of QoS 1.
    pub fn on_puback(&self, session: &Session, packet_id: u16, acknowledged: &mut Acknowledged) {
        let done = session.state.lock().queue.on_puback(packet_id);
        done.into_iter().for_each(|done| self.finish(session, done, acknowledged));
    }

    /// The client has received a message of QoS 2. On an error nothing has changed.
    pub fn on_pubrec(
        &self,
        session: &Session,
        packet_id: u16,
        acknowledged: &mut Acknowledged,
    ) -> Result<PubrecEffect, BrokerError> {
        let mut state = session.state.lock();
        let Some(number) = state.queue.received(packet_id) else { return Ok(PubrecEffect::Unknown) };
        let mut durable_at = 0;
        if session.is_durable {
            let mut write = WriteBatch::new();
            write.put(QUEUES, queue_key(session.id(), number), QueueRecord::RELEASED);
            durable_at = self.kv.commit(&write)?;
        }
        let shared = state.queue.on_pubrec(packet_id, durable_at);
        self.release(shared, &mut acknowledged.write);
        Ok(PubrecEffect::Known)
    }

    /// The client refuses a message of QoS 2.
    pub fn on_refusal(&self, session: &Session, packet_id: u16, acknowledged: &mut Acknowledged) {
        let done = session.state.lock().queue.on_refusal(packet_id);
        done.into_iter().for_each(|done| self.finish(session, done, acknowledged));
    }

    /// The client completes a message of QoS 2. Returns whether it was known.
    pub fn on_pubcomp(&self, session: &Session, packet_id: u16, acknowledged: &mut Acknowledged) -> bool {
        let done = session.state.lock().queue.on_pubcomp(packet_id);
        done.into_iter().for_each(|done| self.finish(session, done, acknowledged));
        done.is_some()
    }

    /// Deletes acknowledged messages from the engine. Keeps them for the next call if it does not take the write; the messages
    /// would be sent again after a crash.
    pub fn commit(&self, acknowledged: &mut Acknowledged) {
        if !acknowledged.write.is_empty() && self.kv.commit(&acknowledged.write).is_ok() {
            acknowledged.write.clear();
        }
    }

    fn finish(&self, session: &Session, done: Done, acknowledged: &mut Acknowledged) {
        acknowledged.calls.extend(done.call);
        if session.is_durable {
            acknowledged.write.delete(QUEUES, queue_key(session.id(), done.number));
            self.release(done.shared, &mut acknowledged.write);
        }
    }

    pub(super) fn release(&self, shared: Option<u64>, write: &mut WriteBatch) {
        if let Some(id) = shared.filter(|id| self.shared.release(*id)) {
            write.delete(CONTENTS, number_key(id));
        }
    }

    /// Loads the next messages of a queue into memory.
    fn load(&self, session: &Session, state: &mut State, from: u64) -> Result<(), BrokerError> {
        let range = KeyRange::new(queue_key(session.id(), from), number_key(session.id() + 1));
        let (mut loaded, mut bytes, mut next) = (Vec::new(), 0, from);
        let mut has_more = false;
        for entry in self.kv.scan(QUEUES, &range, Direction::Ascending)? {
            let (key, value) = entry?;
            if loaded.len() >= limits::WINDOW_MESSAGES || bytes >= limits::WINDOW_BYTES {
                has_more = true;
                break;
            }
            let (_, number) = read_queue_key(&key).map_err(BrokerReadError::from)?;
            next = number + 1;
            // Its deletion has not come to the engine.
            if state.queue.is_done(number) {
                continue;
            }
            loaded.push(self.loaded(session.tenant, number, &value)?);
            bytes += value.len();
        }
        state.queue.load(loaded, next, has_more);
        Ok(())
    }

    fn loaded(&self, tenant: Uuid, number: u64, value: &[u8]) -> Result<Waiting, BrokerReadError> {
        let (delivery, shared) = match QueueRecord::decode(value)? {
            QueueRecord::Released => (None, None),
            QueueRecord::Message(record) => {
                let message = self.memory.message(tenant, record.content);
                let (qos, retain, identifiers) = (record.qos, record.retain, record.identifiers);
                (Some(Delivery { message, qos, retain, identifiers, call: None, share: None }), None)
            }
            QueueRecord::Reference(reference) => {
                let message = self.content(tenant, reference.shared)?;
                let (qos, retain, identifiers) = (reference.qos, reference.retain, reference.identifiers);
                let delivery = Delivery { message, qos, retain, identifiers, call: None, share: None };
                (Some(delivery), Some(reference.shared))
            }
        };
        // What the engine shows may not be durable yet.
        let durable_at = self.kv.progress().committed;
        Ok(Waiting { number, delivery, durable_at, shared })
    }

    pub(super) fn content(&self, tenant: Uuid, id: u64) -> Result<Arc<Message>, BrokerReadError> {
        let missing = RecordError("the content of a queued message is missing");
        let value = self.kv.get(CONTENTS, &number_key(id))?.ok_or(missing)?;
        match QueueRecord::decode(&value)? {
            QueueRecord::Message(record) => Ok(self.memory.message(tenant, record.content)),
            QueueRecord::Reference(_) | QueueRecord::Released => Err(missing.into()),
        }
    }

    /// Adds the next retained messages of a subscription to the queue of its session.
    fn send_retained(
        &self,
        session: &Arc<Session>,
        mut cursor: RetainedCursor,
        now_ms: i64,
    ) -> Result<(), BrokerError> {
        let before = cursor.clone();
        let step = cursor.step(&*self.kv, session.tenant, &self.memory, now_ms);
        let added = step.map_err(BrokerError::from).and_then(|step| {
            // What finds no room stays retained, and is counted.
            self.enqueue(session, step.deliveries)?;
            Ok(step.is_finished)
        });
        let (rest, result) = match added {
            Ok(true) => (None, Ok(())),
            Ok(false) => (Some(cursor), Ok(())),
            Err(error) => (Some(before), Err(error)),
        };
        let mut state = session.state.lock();
        // The client may have unsubscribed meanwhile.
        let is_wanted = |cursor: &RetainedCursor| state.subscriptions.contains_key(cursor.filter());
        let rest = rest.filter(is_wanted);
        state.retained.extend(rest);
        result
    }
}
