//! Replaces what the store refuses of a batch.

use std::sync::Arc;

use hub::registry::Device;
use hub::{Blame, Door, Durability, IngestError, Message, MessageRefusal, RefusedPart, RefusedRow};
use model::Batch;
use wire::mqtt::{ProtocolVersion, ReasonCode};

use super::super::acks::{AckKind, Answer, PendingAck, Refusal};
use super::super::ingest_batch::IngestBatch;
use super::super::session::Session;
use super::event_loop::Worker;
use super::slots::find;
use crate::refusals;

/// A message of which the store has refused rows.
struct Replaced {
    message: usize,
    kept: Replacement,
}

/// What is kept of it instead.
enum Replacement {
    /// Its rows, in another series.
    Rows,
    /// A dead letter; with `whole` nothing else.
    DeadLetter(MessageRefusal),
    /// Nothing: the store accepts it in no form.
    Nothing(IngestError),
}

impl Worker {
    /// Replaces the rows of the messages that have refused rows, by what the hub keeps of them.
    ///
    /// # Errors
    /// The store has no room, or is broken. The batch is as it was.
    pub(super) fn replace_refused(
        &mut self,
        class: Durability,
        refused: &[RefusedRow],
    ) -> Result<(), IngestError> {
        let batch = &self.batches[class];
        let mut rows = Batch::new();
        let mut rows_ends = Vec::with_capacity(batch.len());
        let mut replaced = Vec::new();
        for (message, refused) in batch.messages_of(refused) {
            copy_messages(batch, message, &mut rows, &mut rows_ends);
            let part = RefusedPart { batch: &batch.batch, rows: batch.rows(message), refused };
            let kept = match self.rows_instead(batch, message, &part, &mut rows) {
                Ok(None) => Replacement::Rows,
                Ok(Some(refusal)) => Replacement::DeadLetter(refusal),
                Err(error) if error.blame() == Blame::Caller => Replacement::Nothing(error),
                Err(error) => return Err(error),
            };
            rows_ends.push(rows.len());
            replaced.push(Replaced { message, kept });
        }
        copy_messages(batch, batch.len(), &mut rows, &mut rows_ends);
        self.batches[class].replace_rows(rows, rows_ends);
        self.note_replaced(class, replaced);
        Ok(())
    }

    fn rows_instead(
        &self,
        batch: &IngestBatch,
        message: usize,
        part: &RefusedPart<'_>,
        to: &mut Batch,
    ) -> Result<Option<MessageRefusal>, IngestError> {
        let (hub, device) = (&self.state.hub, batch.device(message));
        match batch.telemetry(message, self.read_buffer.all()) {
            Some((topic, payload)) => {
                let message = Message { owner: device.into(), door: Door::Mqtt, topic, payload };
                hub.rows_instead(&message, part, to)
            }
            None => hub.dead_letters_instead(device, part, to).map(|()| None),
        }
    }

    /// Counts and logs what was refused, and keeps what the acks say about it.
    fn note_replaced(&mut self, class: Durability, replaced: Vec<Replaced>) {
        let mut failed = Vec::new();
        // The message of the last part.
        let mut whole = 0;
        for Replaced { message, kept } in replaced {
            let batch = &mut self.batches[class];
            let ack = &batch.acks[message];
            let (connection, kind) = (ack.connection, ack.kind);
            let device = Arc::clone(batch.device(message));
            if kind == AckKind::Part && whole <= message {
                whole = batch.message_of(message);
            }
            match kept {
                Replacement::Rows => {}
                Replacement::DeadLetter(MessageRefusal { reason, whole: is_whole }) => {
                    let peer = find(&mut self.connections, connection).map(|connection| connection.peer);
                    refusals::message(&self.state.hub, Door::Mqtt, peer, &device, "store_limit", &reason);
                    // Otherwise the store has its other keys, so the message counts as accepted.
                    if is_whole {
                        batch.set_dead_letters(message);
                        match kind {
                            AckKind::Part => batch.refuse(whole, refusal_of_part(&device, &reason)),
                            _ => batch.refuse(message, refusal(reason)),
                        }
                    }
                }
                Replacement::Nothing(error) => {
                    batch.give_up(message);
                    if kind == AckKind::Part {
                        batch.give_up(whole);
                    }
                    if kind == AckKind::None {
                        tracing::warn!(device = %device.name, %error, "a message of QoS 0 or a will could not be stored");
                    }
                    failed.push((connection, error.to_string()));
                }
            }
        }
        failed.into_iter().for_each(|(connection, cause)| self.close_for_store(connection, &cause));
    }

    /// Makes an ack a negative one for an MQTT 5 peer. Before MQTT 5 it stays a plain ack.
    pub(super) fn refuse(&mut self, ack: &mut PendingAck, refusal: Refusal) {
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
}

/// Copies the rows of the messages that have no new rows yet, up to `end`.
fn copy_messages(batch: &IngestBatch, end: usize, rows: &mut Batch, rows_ends: &mut Vec<usize>) {
    let first = rows_ends.len();
    if first < end {
        let (begin, start) = (batch.rows(first).start, rows.len());
        rows.extend_from(&batch.batch, begin..batch.rows(end - 1).end);
        rows_ends.extend((first..end).map(|message| start + batch.rows(message).end - begin));
    }
}

fn refusal(text: String) -> Refusal {
    Refusal { reason: ReasonCode::QUOTA_EXCEEDED, text }
}

fn refusal_of_part(device: &Device, reason: &str) -> Refusal {
    refusal(format!("refused for {:?}, stored for the others: {reason}", device.name))
}
