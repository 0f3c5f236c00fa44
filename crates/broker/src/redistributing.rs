//! What follows the end of a session: messages of shared subscriptions that its client has not acknowledged go to other members of
//! the group [MQTT5 4.8.2], its own ones vanish with it.
//!
//! The work is done in steps of a bounded size. A step is one write: the messages are in the queues of their new receivers, and not
//! in that of the ended session any more, or nothing has changed.

use std::sync::Arc;

use kv::{Direction, KeyRange, WriteBatch};
use uuid::Uuid;

use super::broker::{Broker, QUEUES, SESSIONS, SUBSCRIPTIONS};
use super::ended::EndedSession;
use super::error::BrokerError;
use super::limits;
use super::message::{Delivery, GroupMessage};
use super::publishing::{Draft, DropCause, Dropped, Published, Refusal, Target};
use super::queue::Full;
use super::record::{QueueRecord, number_key, queue_key, read_queue_key};
use super::retained::BrokerReadError;
use super::session::Session;
use super::subscription::Quality;

/// The result of a step.
#[derive(Debug, Default)]
pub struct Redistributed {
    /// Messages that nobody else may get.
    pub dropped: Vec<Dropped>,
    /// Present if there are such messages. The caller keeps them, and then [`confirms`](Broker::confirm).
    pub unconfirmed: Option<Unconfirmed>,
}

/// An ended session that waits until its dead letters are durable. If that is never confirmed, the next start finds the messages again.
#[derive(Debug)]
pub struct Unconfirmed {
    ended: EndedSession,
    handled: Handled,
}

/// Entries of the queue that are handled: their deletion, and the contents that they needed.
#[derive(Debug, Default)]
struct Handled {
    write: WriteBatch,
    contents: Vec<u64>,
}

/// An entry of the queue of an ended session.
#[derive(Debug)]
struct Entry {
    /// Present if the engine has it.
    number: Option<u64>,
    /// The content in the engine that it needs.
    content: Option<u64>,
    /// Present for a message of a shared subscription.
    group: Option<GroupMessage>,
    was_sent: bool,
}

/// What a step changes.
#[derive(Default)]
struct Step {
    draft: Draft,
    /// Contents of the entries that the draft deletes.
    contents: Vec<u64>,
    moved: u64,
    dropped: Vec<Dropped>,
    /// The entries of `dropped`.
    unconfirmed: Handled,
}

impl Broker {
    /// Whether [`redistribute`](Self::redistribute) has something to do.
    pub fn has_ended_sessions(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Does one step for an ended session.
    ///
    /// # Errors
    /// Nothing has changed, and the next call tries it again.
    pub fn redistribute(&self, now_ms: i64) -> Result<Redistributed, BrokerError> {
        let Some(mut ended) = self.ended.take() else { return Ok(Redistributed::default()) };
        let step = match self.step(&mut ended, now_ms) {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(Redistributed::default()),
            Err(error) => {
                self.ended.add([ended]);
                return Err(error);
            }
        };
        self.metrics.redistributed.inc_by(step.moved);
        self.metrics.dropped_shared.inc_by(step.dropped.len() as u64);
        let mut redistributed = Redistributed { dropped: step.dropped, unconfirmed: None };
        match redistributed.dropped.is_empty() {
            true => self.ended.add([ended]),
            false => redistributed.unconfirmed = Some(Unconfirmed { ended, handled: step.unconfirmed }),
        }
        Ok(redistributed)
    }

    /// The dead letters are durable: deletes their messages, and lets the next steps follow. An error leaves `unconfirmed` for the next
    /// call.
    pub fn confirm(&self, unconfirmed: &mut Option<Unconfirmed>) -> Result<(), BrokerError> {
        if let Some(Unconfirmed { handled, .. }) = unconfirmed
            && !handled.write.is_empty()
        {
            self.kv.commit(&handled.write)?;
        }
        if let Some(Unconfirmed { mut ended, handled }) = unconfirmed.take() {
            handled.contents.iter().for_each(|id| self.release(Some(*id), &mut ended.contents));
            self.ended.add([ended]);
        }
        Ok(())
    }

    /// Lets another member of the group take over a message of a client. Returns the reason if none does.
    pub(super) fn give(
        &self,
        tenant: Uuid,
        client_id: &str,
        group: &GroupMessage,
        draft: &mut Draft,
    ) -> Result<(), String> {
        let share = &*group.share;
        let index = self.index_of(tenant);
        let members = index.read().members(share, limits::MEMBERS_ASKED_MAX, Session::is_connected);
        let mut why = format!("no other member of {share:?} with QoS 1 or 2 is left");
        for member in members {
            let options = member.options;
            let delivery = Delivery {
                message: Arc::clone(&group.message),
                qos: group.qos.min(options.qos),
                retain: group.retain && options.retain_as_published,
                identifiers: options.identifier.map(u32::from).into_iter().collect(),
                call: None,
                share: Some(Arc::clone(&group.share)),
            };
            match self.number_for(&member.session, &delivery) {
                Ok(number) => {
                    let session = member.session;
                    draft.targets.push(Target { session, delivery, number, shared: None });
                    return Ok(());
                }
                Err(Refusal::Ended) => {}
                Err(Refusal::Full(Full { limit, max })) => {
                    why = format!("the queues of other members of {share:?} are full, {limit} is {max}");
                }
            }
        }
        Err(format!("the session of the client {client_id:?} has ended, and {why}"))
    }

    /// Handles the next entries of an ended session. Returns `None` if the session is finished.
    fn step(&self, ended: &mut EndedSession, now_ms: i64) -> Result<Option<Step>, BrokerError> {
        // No number is taken meanwhile: every message that the session has got is in the engine.
        let mut order = self.order.lock();
        let entries = self.next_entries(ended)?;
        if entries.is_empty() {
            self.forget(ended)?;
            return Ok(None);
        }
        let mut step = Step::default();
        step.draft.write = ended.contents.clone();
        entries.iter().for_each(|entry| self.plan_entry(ended, entry, now_ms, &mut step));
        self.apply(std::mem::take(&mut step.draft), &mut order, &mut Published::default())?;
        ended.contents.clear();
        step.contents.iter().for_each(|id| self.release(Some(*id), &mut ended.contents));
        let in_memory = entries.iter().filter(|entry| entry.number.is_none()).count();
        ended.rest.in_memory.drain(..in_memory);
        ended.rest.in_memory_sent = ended.rest.in_memory_sent.saturating_sub(in_memory);
        if let Some(last) = entries.last().and_then(|entry| entry.number) {
            ended.next_number = last + 1;
        }
        Ok(Some(step))
    }

    fn plan_entry(&self, ended: &EndedSession, entry: &Entry, now_ms: i64, step: &mut Step) {
        let given = match &entry.group {
            Some(group) if !group.message.is_expired(now_ms) => {
                Some((group, self.give_entry(ended, entry, group, step)))
            }
            _ => None,
        };
        let (write, contents) = match given {
            Some((group, Err(reason))) => {
                let (cause, device) = (DropCause::SessionEnded, Some(ended.key.device));
                step.dropped.push(Dropped { cause, device, message: Arc::clone(&group.message), reason });
                (&mut step.unconfirmed.write, &mut step.unconfirmed.contents)
            }
            given => {
                step.moved += u64::from(given.is_some());
                (&mut step.draft.write, &mut step.contents)
            }
        };
        contents.extend(entry.content);
        if let Some(number) = entry.number {
            write.delete(QUEUES, queue_key(ended.id, number));
        }
    }

    fn give_entry(
        &self,
        ended: &EndedSession,
        entry: &Entry,
        group: &GroupMessage,
        step: &mut Step,
    ) -> Result<(), String> {
        let (client_id, share) = (&ended.key.client_id, &group.share);
        if entry.was_sent && group.qos == Quality::ExactlyOnce {
            // Another member may not get it: the client may have received it [MQTT5 4.8.2].
            return Err(format!(
                "the session of the client {client_id:?} has ended before it acknowledged this message of QoS 2 of {share:?}"
            ));
        }
        let first = step.draft.targets.len();
        self.give(ended.tenant, client_id, group, &mut step.draft)?;
        self.write_queues(&group.message, first, &mut step.draft);
        Ok(())
    }

    /// The next entries in memory, or else in the engine.
    fn next_entries(&self, ended: &EndedSession) -> Result<Vec<Entry>, BrokerError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (at, group) in ended.rest.in_memory.iter().enumerate() {
            if entries.len() >= limits::ENDED_STEP_ENTRIES || bytes >= limits::ENDED_STEP_BYTES {
                break;
            }
            bytes += group.message.bytes() as usize;
            let was_sent = at < ended.rest.in_memory_sent;
            entries.push(Entry { number: None, content: None, group: Some(group.clone()), was_sent });
        }
        if !entries.is_empty() || !ended.is_stored {
            return Ok(entries);
        }
        let range = KeyRange::new(queue_key(ended.id, ended.next_number), number_key(ended.id + 1));
        for entry in self.kv.scan(QUEUES, &range, Direction::Ascending)? {
            let (key, value) = entry?;
            if entries.len() >= limits::ENDED_STEP_ENTRIES || bytes >= limits::ENDED_STEP_BYTES {
                break;
            }
            let (_, number) = read_queue_key(&key).map_err(BrokerReadError::from)?;
            let mut entry = Entry { number: Some(number), content: None, group: None, was_sent: false };
            if !ended.rest.is_done(number) {
                self.read_entry(ended, number, &value, &mut entry)?;
            }
            bytes += value.len() + entry.group.as_ref().map_or(0, |group| group.message.bytes() as usize);
            entries.push(entry);
        }
        Ok(entries)
    }

    fn read_entry(
        &self,
        ended: &EndedSession,
        number: u64,
        value: &[u8],
        entry: &mut Entry,
    ) -> Result<(), BrokerError> {
        entry.was_sent = number < ended.rest.sent_below;
        let read = match QueueRecord::decode(value) {
            Ok(QueueRecord::Released) => Ok(None),
            Ok(QueueRecord::Message(record)) => Ok(record.share.map(|share| GroupMessage {
                message: self.memory.message(ended.tenant, record.content),
                qos: record.qos,
                retain: record.retain,
                share: share.into(),
            })),
            Ok(QueueRecord::Reference(reference)) => {
                entry.content = Some(reference.shared);
                let message =
                    reference.share.map(|share| Ok((share, self.content(ended.tenant, reference.shared)?)));
                message.transpose().map(|found| {
                    found.map(|(share, message)| GroupMessage {
                        message,
                        qos: reference.qos,
                        retain: reference.retain,
                        share: share.into(),
                    })
                })
            }
            Err(error) => Err(error.into()),
        };
        match read {
            Ok(group) => entry.group = group,
            Err(BrokerReadError::Record(error)) => {
                tracing::error!(%error, session = ended.id, number, "a message of an ended session is lost");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Deletes the rest of what the engine has of an ended session.
    fn forget(&self, ended: &EndedSession) -> Result<(), BrokerError> {
        let mut write = ended.contents.clone();
        if ended.is_stored {
            write.delete(SESSIONS, number_key(ended.id));
            write.delete_range(SUBSCRIPTIONS, KeyRange::prefix(number_key(ended.id)));
        }
        if !write.is_empty() {
            self.kv.commit(&write)?;
        }
        Ok(())
    }
}
