//! Messages enter the queues of their subscribers.

use std::sync::Arc;

use kv::{Sequence, WriteBatch};
use parking_lot::MutexGuard;
use uuid::Uuid;

use super::broker::{Broker, QUEUES};
use super::error::BrokerError;
use super::limits;
use super::message::{Delivery, Message, Publication, ToClient};
use super::queue::{Full, Waiting};
use super::record::{MessageRecord, Reference, number_key, queue_key};
use super::retained::{RetainedDraft, RetainedSizes};
use super::session::Session;
use super::shared::{CONTENTS, SHARED_BYTES_MIN};
use super::subscription::Quality;

/// The result of publishing.
#[derive(Debug, Default)]
pub struct Published {
    /// The messages are kept for all their durable receivers when the engine has made this sequence durable.
    pub sequence: Option<Sequence>,
    /// Messages that a limit has refused.
    pub dropped: Vec<Dropped>,
}

/// A message that one receiver, or the set of retained messages, did not get.
#[derive(Debug)]
pub struct Dropped {
    /// The device of the receiver; `None` for a retained message.
    pub device: Option<Uuid>,
    pub message: Arc<Message>,
    /// The reason, with the limit.
    pub reason: String,
}

/// What one write to the engine changes, and what follows when it has succeeded.
#[derive(Default)]
struct Draft {
    write: WriteBatch,
    retained: RetainedDraft,
    targets: Vec<Target>,
    contents: Vec<u64>,
    dropped: Vec<Dropped>,
}

/// A receiver of a message.
pub(super) struct Target {
    pub(super) session: Arc<Session>,
    pub(super) delivery: Delivery,
    /// Present for QoS 1 and 2.
    pub(super) number: Option<u64>,
    pub(super) shared: Option<u64>,
}

impl Broker {
    /// Publishes messages and removes them from `publications`. After an error it can be called again with those that are left.
    pub fn publish(
        &self,
        publications: &mut Vec<Publication>,
        published: &mut Published,
    ) -> Result<(), BrokerError> {
        let mut order = self.order.lock();
        while !publications.is_empty() {
            let mut draft = Draft::default();
            let mut count = 0;
            for publication in &*publications {
                if let Err(error) = self.plan(publication, &order, &mut draft) {
                    self.give_back(&draft);
                    return Err(error);
                }
                count += 1;
                if draft.write.bytes() >= limits::WRITE_BYTES {
                    break;
                }
            }
            self.apply(draft, &mut order, published)?;
            publications.drain(..count);
            self.metrics.published.inc_by(count as u64);
        }
        Ok(())
    }

    /// Adds messages to the queue of one session. Returns whether all found room.
    pub(super) fn enqueue(
        &self,
        session: &Arc<Session>,
        deliveries: Vec<Delivery>,
    ) -> Result<bool, BrokerError> {
        let mut order = self.order.lock();
        let mut draft = Draft::default();
        for delivery in deliveries {
            let (message, first) = (Arc::clone(&delivery.message), draft.targets.len());
            self.reserve(Arc::clone(session), delivery, &mut draft);
            self.write_queues(&message, first, &mut draft);
        }
        let mut published = Published::default();
        self.apply(draft, &mut order, &mut published)?;
        Ok(published.dropped.is_empty())
    }

    /// Sends a message to one client, whatever it has subscribed to. Returns whether its queue has room; a full one is counted.
    pub fn send(&self, session: &Arc<Session>, message: ToClient<'_>) -> Result<bool, BrokerError> {
        let ToClient { content, qos, call } = message;
        let message = self.message(content);
        let delivery = Delivery { message, qos, retain: false, identifiers: Vec::new(), call };
        self.enqueue(session, vec![delivery])
    }

    fn plan(
        &self,
        publication: &Publication,
        sizes: &RetainedSizes,
        draft: &mut Draft,
    ) -> Result<(), BrokerError> {
        let message = &publication.message;
        if publication.retain {
            let refused = draft.retained.keep(publication, &*self.kv, sizes, &mut draft.write)?;
            draft.dropped.extend(refused.map(|reason| Dropped {
                device: None,
                message: Arc::clone(message),
                reason,
            }));
        }
        let index = self.index_of(publication.tenant);
        let found = index.read().matches(&message.topic, Session::is_connected);
        let first = draft.targets.len();
        for found in found {
            let (session, options) = (found.session, found.options);
            if options.no_local && publication.publisher == Some(session.id()) {
                continue;
            }
            let identifiers = options.identifier.map(u32::from).into_iter().chain(found.more_identifiers);
            let delivery = Delivery {
                qos: publication.qos.min(options.qos),
                retain: publication.retain && options.retain_as_published,
                identifiers: identifiers.collect(),
                message: Arc::clone(message),
                call: None,
            };
            self.reserve(session, delivery, draft);
        }
        self.write_queues(message, first, draft);
        Ok(())
    }

    /// Takes a number in the queue of a session.
    fn reserve(&self, session: Arc<Session>, delivery: Delivery, draft: &mut Draft) {
        let number = match delivery.qos {
            Quality::AtMostOnce => None,
            _ => {
                let mut state = session.state.lock();
                if state.has_ended {
                    return;
                }
                let scarce = !session.is_durable && self.is_memory_scarce();
                let reserved = match scarce {
                    true => Err(Full { limit: "MEMORY_BYTES_MAX", max: self.memory_bytes_max as u64 }),
                    false => state.queue.reserve(delivery.message.bytes()),
                };
                match reserved {
                    Ok(number) => Some(number),
                    Err(Full { limit, max }) => {
                        let client = &session.key.client_id;
                        draft.dropped.push(Dropped {
                            device: Some(session.key.device),
                            reason: format!("the queue of the client {client:?} is full, {limit} is {max}"),
                            message: delivery.message,
                        });
                        return;
                    }
                }
            }
        };
        draft.targets.push(Target { session, delivery, number, shared: None });
    }

    /// Writes a message for its durable receivers, the targets from `first` on.
    fn write_queues(&self, message: &Message, first: usize, draft: &mut Draft) {
        let targets = &mut draft.targets[first..];
        let durable = targets.iter().filter(|target| target.number.is_some() && target.session.is_durable);
        let receivers = durable.count() as u64;
        let size = message.topic.len() + message.payload.len() + message.properties.len();
        let shared = (receivers > 1 && size >= SHARED_BYTES_MIN).then(|| {
            let id = self.shared.add(receivers);
            let (qos, content) = (Quality::AtMostOnce, message.content());
            let record = MessageRecord { qos, retain: false, identifiers: Vec::new(), content };
            draft.write.put(CONTENTS, number_key(id), record.encode());
            draft.contents.push(id);
            id
        });
        for target in targets {
            let Some(number) = target.number.filter(|_| target.session.is_durable) else { continue };
            let Delivery { qos, retain, identifiers, .. } = &target.delivery;
            let (qos, retain, identifiers) = (*qos, *retain, identifiers.clone());
            let record = match shared {
                Some(shared) => Reference { qos, retain, identifiers, shared }.encode(),
                None => MessageRecord { qos, retain, identifiers, content: message.content() }.encode(),
            };
            target.shared = shared;
            draft.write.put(QUEUES, queue_key(target.session.id(), number), record);
        }
    }

    fn apply(
        &self,
        mut draft: Draft,
        sizes: &mut MutexGuard<'_, RetainedSizes>,
        published: &mut Published,
    ) -> Result<(), BrokerError> {
        let mut durable_at = 0;
        if !draft.write.is_empty() {
            match self.kv.commit(&draft.write) {
                Ok(sequence) => {
                    published.sequence = Some(sequence);
                    durable_at = sequence;
                }
                Err(error) => {
                    self.give_back(&draft);
                    return Err(error.into());
                }
            }
        }
        draft.retained.apply(sizes);
        let queued = draft.dropped.iter().filter(|dropped| dropped.device.is_some()).count();
        self.metrics.dropped_queued.inc_by(queued as u64);
        published.dropped.append(&mut draft.dropped);
        draft.targets.into_iter().for_each(|target| self.push(target, durable_at));
        Ok(())
    }

    /// Adds a message to the queue of its receiver in memory.
    pub(super) fn push(&self, target: Target, durable_at: Sequence) {
        let Target { session, delivery, number, shared } = target;
        let mut state = session.state.lock();
        let Some(number) = number else {
            // A message of QoS 0 is for clients that are there.
            let has_room = state.connection.is_none()
                || !self.is_memory_scarce() && state.queue.push_immediate(delivery);
            self.metrics.dropped_immediate.inc_by(u64::from(!has_room));
            session.signal(&state);
            return;
        };
        let keep = !session.is_durable
            || state.connection.is_some()
                && state.queue.window_len() < limits::WINDOW_MESSAGES
                && !self.is_memory_scarce();
        let durable_at = if session.is_durable { durable_at } else { 0 };
        state.queue.push(Waiting { number, delivery: Some(delivery), durable_at, shared }, keep);
        session.signal(&state);
    }

    fn give_back(&self, draft: &Draft) {
        for target in draft.targets.iter().rev().filter(|target| target.number.is_some()) {
            target.session.state.lock().queue.give_back(target.delivery.message.bytes());
        }
        draft.contents.iter().for_each(|id| self.shared.forget(*id));
    }

    pub(super) fn is_memory_scarce(&self) -> bool {
        self.memory.bytes() > self.memory_bytes_max
    }
}
