//! Appends the batches of a pass to the store.

use std::net::SocketAddr;
use std::time::Instant;

use hub::{Blame, Door, Durability, IngestError, Kept, Message, MessageRefusal, Ticket};
use model::Batch;
use wire::mqtt::{ProtocolVersion, ReasonCode};

use super::super::acks::{AckGroup, AckKind, Answer, ConnectionKey, PendingAck, Refusal};
use super::super::ingest_batch::IngestBatch;
use super::super::session::{Session, SessionEnd, TELEMETRY_TOPIC};
use super::event_loop::Worker;
use super::slots::find;
use crate::refusals;

/// The result of appending one message of a refused batch.
enum Outcome {
    /// Stored as rows.
    Stored(Ticket),
    /// Stored as a dead letter.
    DeadLetter(Ticket, Refusal),
    /// The store has no room now.
    Busy,
    /// The store accepts it in no form.
    Failed(IngestError),
}

/// What happened to a part of a message whose own entry comes later.
enum PartFault {
    /// It is a dead letter. The others are stored.
    Refused(Refusal),
    /// The store accepts it in no form, so the message gets no ack.
    Failed,
}

impl Worker {
    /// Appends the batches of this pass. Keeps a batch for which the store has no room.
    pub(super) fn append_batches(&mut self) {
        self.stalled = std::mem::take(&mut self.store_busy);
        if !self.publish_messages() {
            // The acks of these messages are in the batches.
            return;
        }
        for class in Durability::ALL {
            let batch = &self.batches[class];
            if batch.is_empty() {
                continue;
            }
            let appended = if batch.batch.is_empty() {
                // Empty messages, or repeated QoS 2 messages, whose first ones were appended before.
                Ok(Ticket::after(self.state.hub.progress().appended))
            } else {
                self.state.hub.ingest(&batch.batch, class)
            };
            match appended {
                Ok(ticket) => self.await_durability(class, ticket),
                Err(error) => match error.blame() {
                    Blame::Busy => self.stalled = true,
                    Blame::Caller => self.append_one_by_one(class),
                    Blame::Operator => self.refuse_batch(class, &error),
                },
            }
        }
    }

    fn await_durability(&mut self, class: Durability, ticket: Ticket) {
        let list = self.queues.new_list();
        let batch = &mut self.batches[class];
        self.pass_messages += batch.messages;
        let metrics = self.state.hub.metrics().door(Door::Mqtt);
        metrics.messages.inc_by(batch.messages);
        metrics.requests.inc_by(batch.messages);
        metrics.bytes.inc_by(batch.bytes);
        let mut acks = std::mem::replace(&mut batch.acks, list);
        for (message, ack) in acks.iter_mut().enumerate() {
            ack.ticket = ticket.part(batch.rows(message));
            ack.stored();
        }
        batch.clear();
        let kv_sequence = self.kv_sequence;
        self.queues.push(class, AckGroup { ticket, kv_sequence, received: Instant::now(), acks });
    }

    /// Appends every message by itself, because the store refused the batch for its content, such as one column too many. So
    /// only the message with the fault becomes a dead letter. The acks still leave together and in order.
    fn append_one_by_one(&mut self, class: Durability) {
        let mut whole = std::mem::take(&mut self.batches[class]);
        let mut acks = std::mem::take(&mut whole.acks).into_iter();
        let mut group = AckGroup {
            ticket: Ticket::after(0),
            kv_sequence: self.kv_sequence,
            received: Instant::now(),
            acks: self.queues.new_list(),
        };
        let mut failed = Vec::new();
        let mut part_fault = None;
        let mut batch = Batch::new();
        let (mut messages, mut bytes) = (0, 0);
        while let Some(mut ack) = acks.next() {
            let message = whole.len() - acks.len() - 1;
            let is_message = ack.kind != AckKind::Part;
            let peer = find(&mut self.connections, ack.connection).map(|connection| connection.peer);
            match self.append_one(&whole, message, peer, class, &mut batch) {
                Outcome::Stored(ticket) => {
                    match part_fault.take_if(|_| is_message) {
                        Some(PartFault::Refused(refusal)) => self.refuse(&mut ack, refusal),
                        Some(PartFault::Failed) => {
                            ack.not_stored();
                            continue;
                        }
                        None => ack.stored(),
                    }
                    group.push(ack, ticket);
                }
                Outcome::DeadLetter(ticket, refusal) if !is_message => {
                    let (device, text) = (&whole.device(message).name, refusal.text);
                    let text = format!("refused for {device:?}, stored for the others: {text}");
                    part_fault.get_or_insert(PartFault::Refused(Refusal { text, ..refusal }));
                    group.push(ack, ticket);
                }
                Outcome::DeadLetter(ticket, refusal) => {
                    self.refuse(&mut ack, refusal);
                    group.push(ack, ticket);
                }
                Outcome::Busy => {
                    self.stalled = true;
                    let mut rest: Vec<PendingAck> = std::iter::once(ack).chain(acks).collect();
                    if let Some(fault) = part_fault.take()
                        && let Some(of_message) = rest.iter_mut().find(|ack| ack.kind != AckKind::Part)
                    {
                        self.note_part_fault(of_message, fault);
                    }
                    let mut tail = whole.tail(message, rest.into_iter());
                    tail.messages = whole.messages.saturating_sub(messages);
                    tail.bytes = whole.bytes.saturating_sub(bytes);
                    self.batches[class] = tail;
                    break;
                }
                Outcome::Failed(error) => {
                    ack.not_stored();
                    if ack.kind == AckKind::None {
                        let device = whole.device(message);
                        tracing::warn!(device = %device.name, %error, "a message of QoS 0 or a will could not be stored");
                    }
                    if !is_message {
                        part_fault = Some(PartFault::Failed);
                    }
                    failed.push((ack.connection, error.to_string()));
                    continue;
                }
            }
            messages += u64::from(is_message);
            bytes += whole.payload(message).len() as u64;
        }
        let metrics = self.state.hub.metrics().door(Door::Mqtt);
        metrics.messages.inc_by(messages);
        metrics.requests.inc_by(messages);
        metrics.bytes.inc_by(bytes);
        self.queues.push(class, group);
        failed.into_iter().for_each(|(connection, cause)| self.close_for_store(connection, &cause));
    }

    fn append_one(
        &self,
        whole: &IngestBatch,
        message: usize,
        peer: Option<SocketAddr>,
        class: Durability,
        batch: &mut Batch,
    ) -> Outcome {
        let hub = &self.state.hub;
        if whole.rows(message).is_empty() {
            return Outcome::Stored(Ticket::after(hub.progress().appended));
        }
        batch.clear();
        whole.copy_rows(message, batch);
        let (device, payload) = (whole.device(message), whole.payload(message));
        let kept = match payload.is_empty() {
            // A dead letter has no other form.
            true => hub.ingest_letters(device, batch, class).map(|ticket| Kept { ticket, refusal: None }),
            false => {
                let message =
                    Message { owner: device.into(), door: Door::Mqtt, topic: TELEMETRY_TOPIC, payload };
                hub.ingest_message(&message, batch, class)
            }
        };
        match kept {
            Ok(Kept { ticket, refusal: None }) => Outcome::Stored(ticket),
            Ok(Kept { ticket, refusal: Some(MessageRefusal { reason, whole }) }) => {
                refusals::message(hub, Door::Mqtt, peer, device, "store_limit", &reason);
                match whole {
                    true => {
                        let refusal = Refusal { reason: ReasonCode::QUOTA_EXCEEDED, text: reason };
                        Outcome::DeadLetter(ticket, refusal)
                    }
                    // The store has its other keys, so the message counts as accepted.
                    false => Outcome::Stored(ticket),
                }
            }
            Err(error) if error.blame() == Blame::Busy => Outcome::Busy,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Keeps the fault of a part in the ack of its message, which the store takes later.
    fn note_part_fault(&mut self, ack: &mut PendingAck, fault: PartFault) {
        match fault {
            PartFault::Refused(refusal) => self.refuse(ack, refusal),
            PartFault::Failed => {
                // The worker closes the connection, so this ack leaves no more, and the peer sends the message again as a new one.
                ack.not_stored();
                ack.answer = Answer::Accepted;
            }
        }
    }

    /// Makes an ack a negative one for an MQTT 5 peer. Before MQTT 5 it stays a plain ack.
    fn refuse(&mut self, ack: &mut PendingAck, refusal: Refusal) {
        let version = match find(&mut self.connections, ack.connection).map(|found| &found.session) {
            Some(Session::Connected(connected)) => connected.peer.version,
            _ => ProtocolVersion::V5,
        };
        match version {
            ProtocolVersion::V31 | ProtocolVersion::V311 => ack.stored(),
            ProtocolVersion::V5 => {
                ack.not_stored();
                ack.answer = Answer::Refused(Box::new(refusal));
            }
        }
    }

    /// The store accepts no more rows. The worker closes the connections without acks, so the peers keep their messages.
    fn refuse_batch(&mut self, class: Durability, error: &IngestError) {
        let messages = self.batches[class].acks.len();
        tracing::error!(%error, messages, "messages refused: the store cannot take them");
        self.refuse_acks(class, &error.to_string());
    }

    /// Discards a batch and closes the connections of its messages.
    pub(super) fn refuse_acks(&mut self, class: Durability, cause: &str) {
        let batch = &mut self.batches[class];
        let acks = std::mem::take(&mut batch.acks);
        batch.clear();
        acks.iter().for_each(PendingAck::not_stored);
        acks.iter().for_each(|ack| self.close_for_store(ack.connection, cause));
    }

    pub(super) fn close_for_store(&mut self, connection: ConnectionKey, cause: &str) {
        self.close(
            connection,
            SessionEnd::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause),
        );
    }
}
