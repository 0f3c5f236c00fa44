//! Appends the batches of a pass to the store.

use std::time::Instant;

use hub::{Blame, Door, Durability, IngestError, RefusedRow, Ticket};
use wire::mqtt::ReasonCode;

use super::super::acks::{AckGroup, ConnectionKey, PendingAck};
use super::super::ingest_batch::{Accepted, IngestBatch};
use super::super::limits;
use super::super::session::SessionEnd;
use super::event_loop::Worker;

impl Worker {
    /// Appends the batches of this pass. Keeps a batch for which the store has no room.
    pub(super) fn append_batches(&mut self) {
        self.stalled = std::mem::take(&mut self.store_busy);
        if !self.publish_messages() {
            // The acks of these messages are in the batches.
            return;
        }
        self.read_buffer.keep(&self.batches);
        for class in Durability::ALL {
            self.append_batch(class);
        }
        self.read_buffer.keep(&self.batches);
    }

    /// Appends the batch of a class. If the store refuses rows, what is kept of their messages takes their place in the batch, so the
    /// others are still stored with it, and the acks leave together and in order.
    fn append_batch(&mut self, class: Durability) {
        for _ in 0..limits::APPENDS_PER_PASS_MAX {
            let batch = &self.batches[class];
            if batch.is_empty() {
                return;
            }
            let appended = if batch.batch.is_empty() {
                // Empty messages, or repeated QoS 2 messages, whose first ones were appended before.
                Ok(Ticket::after(self.state.hub.progress().appended))
            } else {
                self.state.hub.ingest(&batch.batch, class)
            };
            let error = match appended {
                Ok(ticket) => return self.await_durability(class, ticket),
                Err(error) => error,
            };
            let replaced = match (error.blame(), error) {
                (Blame::Caller, IngestError::Rows(refused)) => self.replace_refused(class, refused.rows()),
                (Blame::Caller, error) => match self.batches[class].split() {
                    Some(rest) => return self.append_halves(class, rest),
                    None => {
                        let rows = 0..self.batches[class].batch.len();
                        let refused: Vec<RefusedRow> =
                            rows.map(|row| RefusedRow::whole(row, error.clone())).collect();
                        self.replace_refused(class, &refused)
                    }
                },
                (_, error) => Err(error),
            };
            match replaced {
                Ok(()) => {}
                Err(busy) if busy.blame() == Blame::Busy => break,
                Err(error) => return self.refuse_batch(class, &error),
            }
        }
        self.stalled = true;
    }

    /// Appends a batch that is too large as a whole: its first messages, and then the others.
    fn append_halves(&mut self, class: Durability, rest: IngestBatch) {
        self.append_batch(class);
        let is_appended = self.batches[class].is_empty();
        self.batches[class].append(rest);
        if is_appended {
            self.append_batch(class);
        }
    }

    fn await_durability(&mut self, class: Durability, ticket: Ticket) {
        let list = self.queues.new_list();
        let batch = &mut self.batches[class];
        let Accepted { messages, bytes } = batch.accepted();
        self.pass_messages += messages;
        let metrics = self.state.hub.metrics().door(Door::Mqtt);
        metrics.messages.inc_by(messages);
        metrics.requests.inc_by(messages);
        metrics.bytes.inc_by(bytes);
        let mut acks = std::mem::replace(&mut batch.acks, list);
        for (message, ack) in acks.iter_mut().enumerate() {
            ack.ticket = ticket.part(batch.rows(message));
            ack.stored();
        }
        let refusals = batch.take_refusals();
        batch.clear();
        for (message, refusal) in refusals {
            self.refuse(&mut acks[message], refusal);
        }
        let kv_sequence = self.kv_sequence;
        self.queues.push(class, AckGroup { ticket, kv_sequence, received: Instant::now(), acks });
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
