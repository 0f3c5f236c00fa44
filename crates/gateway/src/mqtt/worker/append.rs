//! From a turn's batch to the store, and from its durability to acks.

use std::net::SocketAddr;
use std::time::Instant;

use hub::{Blame, Door, Durability, IngestError, Kept, Message, MessageRefusal, Sequence};
use model::Batch;
use wire::mqtt::{ProtocolVersion, ReasonCode};

use super::super::acks::{AckGroup, AckKind, Answer, ConnectionKey, PendingAck, Refusal};
use super::super::session::{Close, Session, TELEMETRY_TOPIC};
use super::super::turn::TurnBatch;
use super::{Worker, enqueue, find};
use crate::refusals;

/// What became of one message of a batch that the store refused.
enum Outcome {
    Taken(Sequence),
    /// Kept as a dead letter.
    Letter(Sequence, Refusal),
    /// The store has no room now.
    Busy,
    /// The store takes it in no form.
    Failed(IngestError),
}

impl Worker {
    /// Appends what this turn has read; keeps it when the store has no room.
    pub(super) fn append_turn(&mut self) {
        self.stalled = std::mem::take(&mut self.not_now);
        for class in Durability::ALL {
            let turn = &self.turn[class as usize];
            if turn.is_empty() {
                continue;
            }
            let appended = if turn.batch.is_empty() {
                // Nothing to store, or repeated QoS 2 messages: what they stand for was appended before.
                Ok(self.door.hub.progress().appended)
            } else {
                self.door.hub.ingest(&turn.batch, class)
            };
            match appended {
                Ok(sequence) => self.await_durability(class, sequence),
                Err(error) => match error.blame() {
                    Blame::Busy => self.stalled = true,
                    Blame::Caller => self.append_one_by_one(class),
                    Blame::Operator => self.refuse_turn(class, &error),
                },
            }
        }
    }

    fn await_durability(&mut self, class: Durability, sequence: Sequence) {
        let list = self.queues.new_list();
        let turn = &mut self.turn[class as usize];
        self.turn_messages += turn.messages;
        let metrics = self.door.hub.metrics().door(Door::Mqtt);
        metrics.messages.inc_by(turn.messages);
        metrics.bytes.inc_by(turn.bytes);
        let acks = std::mem::replace(&mut turn.acks, list);
        turn.clear();
        acks.iter().for_each(PendingAck::taken);
        self.queues.push(class, AckGroup { sequence, received: Instant::now(), acks });
    }

    /// Something in the batch is not to be had, such as one column too many. Every message is appended by itself,
    /// so that only the one with the fault becomes a dead letter. The acks still leave together and in order.
    fn append_one_by_one(&mut self, class: Durability) {
        let mut turn = std::mem::take(&mut self.turn[class as usize]);
        let mut acks = std::mem::take(&mut turn.acks).into_iter();
        let mut group = AckGroup { sequence: 0, received: Instant::now(), acks: self.queues.new_list() };
        let mut failed = Vec::new();
        let mut batch = Batch::new();
        let (mut messages, mut bytes) = (0, 0);
        while let Some(mut ack) = acks.next() {
            let message = turn.len() - acks.len() - 1;
            let peer = find(&mut self.connections, ack.connection).map(|connection| connection.peer);
            match self.append_one(&turn, message, peer, class, &mut batch) {
                Outcome::Taken(sequence) => {
                    ack.taken();
                    group.sequence = sequence;
                    group.acks.push(ack);
                }
                Outcome::Letter(sequence, refusal) => {
                    self.tell_refusal(&mut ack, refusal);
                    group.sequence = sequence;
                    group.acks.push(ack);
                }
                Outcome::Busy => {
                    self.stalled = true;
                    let rest = std::iter::once(ack).chain(acks);
                    let mut tail = turn.tail(message, rest);
                    tail.messages = turn.messages.saturating_sub(messages);
                    tail.bytes = turn.bytes.saturating_sub(bytes);
                    self.turn[class as usize] = tail;
                    break;
                }
                Outcome::Failed(error) => {
                    ack.withdrawn();
                    if ack.kind == AckKind::None {
                        let device = turn.device(message);
                        tracing::warn!(device = %device.name, %error, "a message of QoS 0 or a will could not be stored");
                    }
                    failed.push((ack.connection, error.to_string()));
                    continue;
                }
            }
            messages += 1;
            bytes += turn.payload(message).len() as u64;
        }
        let metrics = self.door.hub.metrics().door(Door::Mqtt);
        metrics.messages.inc_by(messages);
        metrics.bytes.inc_by(bytes);
        self.queues.push(class, group);
        failed.into_iter().for_each(|(connection, cause)| self.close_for_store(connection, &cause));
    }

    fn append_one(
        &self,
        turn: &TurnBatch,
        message: usize,
        peer: Option<SocketAddr>,
        class: Durability,
        batch: &mut Batch,
    ) -> Outcome {
        let hub = &self.door.hub;
        if turn.rows(message).is_empty() {
            return Outcome::Taken(hub.progress().appended);
        }
        batch.clear();
        turn.copy_rows(message, batch);
        let (device, payload) = (turn.device(message), turn.payload(message));
        let kept = match payload.is_empty() {
            // A dead letter has no other form.
            true => hub.ingest(batch, class).map(|sequence| Kept { sequence, refusal: None }),
            false => {
                let message = Message { device, door: Door::Mqtt, topic: TELEMETRY_TOPIC, payload };
                hub.ingest_message(&message, batch, class)
            }
        };
        match kept {
            Ok(Kept { sequence, refusal: None }) => Outcome::Taken(sequence),
            Ok(Kept { sequence, refusal: Some(MessageRefusal { reason, whole }) }) => {
                refusals::message(hub, Door::Mqtt, peer, device, "store_limit", &reason);
                match whole {
                    true => {
                        let refusal = Refusal { reason: ReasonCode::QUOTA_EXCEEDED, text: reason };
                        Outcome::Letter(sequence, refusal)
                    }
                    // Its other keys are stored, so that the message is taken.
                    false => Outcome::Taken(sequence),
                }
            }
            Err(error) if error.blame() == Blame::Busy => Outcome::Busy,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Makes an ack a refusal where the peer has a word for it; before MQTT 5 it stays a plain ack.
    fn tell_refusal(&mut self, ack: &mut PendingAck, refusal: Refusal) {
        let version = match find(&mut self.connections, ack.connection).map(|found| &found.session) {
            Some(Session::Connected(connected)) => connected.peer.version,
            _ => ProtocolVersion::V5,
        };
        match version {
            ProtocolVersion::V31 | ProtocolVersion::V311 => ack.taken(),
            ProtocolVersion::V5 => {
                ack.withdrawn();
                ack.answer = Answer::No(Box::new(refusal));
            }
        }
    }

    /// The store takes nothing any more: the peers keep their messages and learn that there will be no ack.
    fn refuse_turn(&mut self, class: Durability, error: &IngestError) {
        let turn = &mut self.turn[class as usize];
        let acks = std::mem::take(&mut turn.acks);
        turn.clear();
        tracing::error!(%error, messages = acks.len(), "messages refused: the store cannot take them");
        acks.iter().for_each(PendingAck::withdrawn);
        let cause = error.to_string();
        acks.iter().for_each(|ack| self.close_for_store(ack.connection, &cause));
    }

    fn close_for_store(&mut self, connection: ConnectionKey, cause: &str) {
        self.close(connection, Close::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause));
    }

    pub(super) fn release_acks(&mut self) {
        self.seat.inbox.await_progress(!self.queues.is_empty() || self.stalled);
        let progress = self.door.hub.progress();
        while let Some(group) = self.queues.pop_reached(progress) {
            self.send_acks(group);
        }
        if progress.sealed {
            let cause = "the store was sealed by a failed write before this was durable";
            while let Some(group) = self.queues.pop_any() {
                group.acks.iter().for_each(|ack| self.close_for_store(ack.connection, cause));
            }
        }
    }

    fn send_acks(&mut self, mut group: AckGroup) {
        let latency_s = group.received.elapsed().as_secs_f64();
        let metrics = self.door.hub.metrics().door(Door::Mqtt);
        metrics.ack_latency.observe_many(latency_s, group.acks.len() as u64);
        let in_flight_max = u32::from(self.door.options.receive_maximum);
        for ack in group.acks.drain(..) {
            let key = ack.connection;
            let Some(connection) = find(&mut self.connections, key) else { continue };
            let Session::Connected(connected) = &mut connection.session else { continue };
            if ack.kind != AckKind::None {
                connected.in_flight -= 1;
            }
            connected.peer.write_ack(&ack, &mut connection.out);
            if !connection.dirty && !connection.out.is_empty() {
                connection.dirty = true;
                self.dirty.push(key);
            }
            if connection.readable && connection.may_read(in_flight_max) {
                enqueue(&mut self.ready, connection, key);
            }
        }
        self.queues.recycle(group.acks);
    }
}
