//! Messages enter the queues of their subscribers.

use std::sync::Arc;

use kv::{Sequence, WriteBatch};
use parking_lot::MutexGuard;
use uuid::Uuid;

use super::broker::{Broker, QUEUES};
use super::ended::EndedSession;
use super::error::BrokerError;
use super::limits;
use super::message::{Delivery, GroupMessage, Message, Publication, ToClient};
use super::queue::{Full, Waiting};
use super::record::{MessageRecord, Reference, number_key, queue_key};
use super::retained::{RetainedDraft, RetainedSizes};
use super::session::{Session, SessionKey};
use super::shared::{CONTENTS, SHARED_BYTES_MIN};
use super::subscription::Quality;
use super::tenant_shares::Shared;

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
    pub cause: DropCause,
    /// The device of the receiver; `None` for a retained message.
    pub device: Option<Uuid>,
    pub message: Arc<Message>,
    /// The reason in full, with the limit if there is one.
    pub reason: String,
}

/// Why a receiver did not get a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The queue of the receiver is full.
    QueueFull,
    /// The tenant has too many retained messages.
    RetainedFull,
    /// The session of a member of a shared subscription has ended, and no other member may get the message.
    SessionEnded,
}

/// What one write to the engine changes, and what follows when it has succeeded.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) write: WriteBatch,
    retained: RetainedDraft,
    pub(super) targets: Vec<Target>,
    contents: Vec<u64>,
    dropped: Vec<Dropped>,
}

/// Why a session does not take a message.
pub(super) enum Refusal {
    Ended,
    Full(Full),
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
        let message = self.message(session.tenant, content);
        let delivery = Delivery { message, qos, retain: false, identifiers: Vec::new(), call, share: None };
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
                cause: DropCause::RetainedFull,
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
                share: found.share,
            };
            self.reserve(session, delivery, draft);
        }
        self.write_queues(message, first, draft);
        Ok(())
    }

    /// Takes room in the queue of a session.
    fn reserve(&self, session: Arc<Session>, delivery: Delivery, draft: &mut Draft) {
        let refusal = match self.number_for(&session, &delivery) {
            Ok(number) => return draft.targets.push(Target { session, delivery, number, shared: None }),
            Err(refusal) => refusal,
        };
        let SessionKey { device, client_id } = &session.key;
        let (cause, reason) = match (refusal, GroupMessage::of(&delivery)) {
            (Refusal::Full(Full { limit, max }), _) => {
                let reason = format!("the queue of the client {client_id:?} is full, {limit} is {max}");
                (DropCause::QueueFull, reason)
            }
            // It has ended after the selection of a member; the index has the others.
            (Refusal::Ended, Some(group)) => match self.give(session.tenant, client_id, &group, draft) {
                Ok(()) => return,
                Err(reason) => (DropCause::SessionEnded, reason),
            },
            (Refusal::Ended, None) => return,
        };
        draft.dropped.push(Dropped { cause, device: Some(*device), reason, message: delivery.message });
    }

    /// Takes a number in the queue of a session, for a message of QoS 1 or 2.
    pub(super) fn number_for(&self, session: &Session, delivery: &Delivery) -> Result<Option<u64>, Refusal> {
        if delivery.qos == Quality::AtMostOnce {
            return Ok(None);
        }
        let mut state = session.state.lock();
        if state.has_ended {
            return Err(Refusal::Ended);
        }
        if !session.is_durable && self.is_memory_scarce(session.tenant) {
            return Err(Refusal::Full(Full { limit: "MEMORY_BYTES_MAX", max: self.memory_bytes_max as u64 }));
        }
        let number = state.queue.reserve(delivery.message.bytes()).map_err(Refusal::Full)?;
        if !session.is_durable {
            // They count before the next receiver of the message asks for memory.
            state.queue.make_places();
            self.count_places(session.tenant, &mut state);
        }
        Ok(Some(number))
    }

    /// Writes a message for its durable receivers, the targets from `first` on.
    pub(super) fn write_queues(&self, message: &Message, first: usize, draft: &mut Draft) {
        let targets = &mut draft.targets[first..];
        let durable = targets.iter().filter(|target| target.number.is_some() && target.session.is_durable);
        let receivers = durable.count() as u64;
        let size = message.topic.len() + message.payload.len() + message.properties.len();
        let shared = (receivers > 1 && size >= SHARED_BYTES_MIN).then(|| {
            let id = self.shared.add(receivers);
            let (qos, content) = (Quality::AtMostOnce, message.content());
            let identifiers = Vec::new();
            let record = MessageRecord { qos, retain: false, identifiers, share: None, content };
            draft.write.put(CONTENTS, number_key(id), record.encode());
            draft.contents.push(id);
            id
        });
        for target in targets {
            let Some(number) = target.number.filter(|_| target.session.is_durable) else { continue };
            let Delivery { qos, retain, identifiers, share, .. } = &target.delivery;
            let (qos, retain, identifiers, share) = (*qos, *retain, identifiers.clone(), share.as_deref());
            let content = message.content();
            let record = match shared {
                Some(shared) => Reference { qos, retain, identifiers, share, shared }.encode(),
                None => MessageRecord { qos, retain, identifiers, share, content }.encode(),
            };
            target.shared = shared;
            draft.write.put(QUEUES, queue_key(target.session.id(), number), record);
        }
    }

    /// Commits a draft, and adds its messages to the queues of their receivers.
    pub(super) fn apply(
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
        let dropped = |cause| draft.dropped.iter().filter(|dropped| dropped.cause == cause).count() as u64;
        self.metrics.dropped_queued.inc_by(dropped(DropCause::QueueFull));
        self.metrics.dropped_shared.inc_by(dropped(DropCause::SessionEnded));
        published.dropped.append(&mut draft.dropped);
        draft.targets.into_iter().for_each(|target| self.push(target, durable_at));
        Ok(())
    }

    /// Adds a message to the queue of its receiver in memory.
    pub(super) fn push(&self, target: Target, durable_at: Sequence) {
        let Target { session, mut delivery, number, shared } = target;
        let mut state = session.state.lock();
        let Some(number) = number else {
            // A message of QoS 0 is for clients that are there.
            let has_room = state.connection.is_none()
                || !self.is_memory_scarce(session.tenant) && state.queue.push_immediate(delivery);
            self.metrics.dropped_immediate.inc_by(u64::from(!has_room));
            self.count_places(session.tenant, &mut state);
            session.signal(&state);
            return;
        };
        if state.has_ended {
            // It has ended since the number was taken. If it is durable, what follows its end reads the message from the engine.
            let group = GroupMessage::of(&delivery).filter(|_| !session.is_durable);
            self.ended.add(group.map(|group| EndedSession::with_message(&session, group)));
            return;
        }
        if session.is_durable {
            delivery.share = None;
        }
        let keep = !session.is_durable
            || state.connection.is_some()
                && state.queue.window_len() < limits::WINDOW_MESSAGES
                && !self.is_memory_scarce(session.tenant);
        let durable_at = if session.is_durable { durable_at } else { 0 };
        state.queue.push(Waiting { number, delivery: Some(delivery), durable_at, shared }, keep);
        self.count_places(session.tenant, &mut state);
        session.signal(&state);
    }

    fn give_back(&self, draft: &Draft) {
        for target in draft.targets.iter().rev().filter(|target| target.number.is_some()) {
            let mut state = target.session.state.lock();
            if !state.has_ended {
                state.queue.give_back(target.delivery.message.bytes());
            }
        }
        draft.contents.iter().for_each(|id| self.shared.forget(*id));
    }

    /// Whether the messages of all tenants, or those of this one, take as much memory as they may.
    pub(super) fn is_memory_scarce(&self, tenant: Uuid) -> bool {
        let (all, max) = (self.memory.bytes(), self.memory_bytes_max);
        if all.saturating_mul(2) <= max {
            // Nobody is above half of what the others leave.
            return false;
        }
        let own = self.memory.bytes_of(tenant);
        let others = all.saturating_sub(own) as u64;
        all > max || own as u64 > self.shares.most(tenant, Shared::MemoryBytes, max as u64, others)
    }
}
