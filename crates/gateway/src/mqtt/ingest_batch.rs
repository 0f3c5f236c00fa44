//! The batch that a worker collects in one pass of its event loop: the rows and acks of many messages.
//!
//! All messages of a pass form one batch, because one append and one sync serve them all. If the store refuses the batch for
//! its content, one message must not take the others with it. So the batch records where each message ends and its payload,
//! and can be split into messages again.

use std::ops::Range;
use std::sync::Arc;

use hub::registry::Device;
use model::Batch;

use super::acks::{AckKind, Answer, ConnectionKey, PendingAck};
use super::limits;

/// Rows and acks of one pass of the event loop with the same durability class.
#[derive(Debug, Default)]
pub(crate) struct IngestBatch {
    pub(crate) batch: Batch,
    /// One ack for every message, in the order of the rows.
    pub(crate) acks: Vec<PendingAck>,
    spans: Vec<Span>,
    payloads: Vec<u8>,
    senders: Vec<Sender>,
    /// Accepted messages, without repetitions.
    pub(crate) messages: u64,
    /// Bytes of the payloads of these messages.
    pub(crate) bytes: u64,
}

/// The end of a message.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    rows: usize,
    payload: usize,
}

/// The sender of the messages before `messages_end`.
#[derive(Debug)]
struct Sender {
    device: Arc<Device>,
    messages_end: usize,
}

impl IngestBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    /// Number of completed messages.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Completes a message whose rows are in the batch. `payload` is empty for a dead letter, and for a repeated message,
    /// which has no rows.
    pub(crate) fn push(&mut self, device: &Arc<Device>, ack: PendingAck, payload: &[u8]) {
        self.acks.push(ack);
        self.payloads.extend_from_slice(payload);
        self.spans.push(Span { rows: self.batch.len(), payload: self.payloads.len() });
        match self.senders.last_mut() {
            Some(last) if Arc::ptr_eq(&last.device, device) => last.messages_end = self.acks.len(),
            _ => {
                self.senders.push(Sender { device: Arc::clone(device), messages_end: self.acks.len() });
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.acks.clear();
        self.spans.clear();
        self.senders.clear();
        self.payloads.clear();
        self.payloads.shrink_to(limits::PASS_BYTES_MAX);
        (self.messages, self.bytes) = (0, 0);
    }

    /// The rows of a message.
    pub(crate) fn rows(&self, message: usize) -> Range<usize> {
        self.before(message).rows..self.spans[message].rows
    }

    /// The payload of a message; empty for a dead letter.
    pub(crate) fn payload(&self, message: usize) -> &[u8] {
        &self.payloads[self.before(message).payload..self.spans[message].payload]
    }

    /// The sender of a message.
    pub(crate) fn device(&self, message: usize) -> &Arc<Device> {
        let sender = self.senders.partition_point(|sender| sender.messages_end <= message);
        &self.senders[sender].device
    }

    /// Fills `batch` with the rows of one message.
    pub(crate) fn copy_rows(&self, message: usize, batch: &mut Batch) {
        copy_rows(&self.batch, self.rows(message), batch);
    }

    /// Completes the rows of one device in a message that has several. The message itself comes after its parts, with the ack.
    pub(crate) fn push_part(&mut self, device: &Arc<Device>, connection: ConnectionKey, payload: &[u8]) {
        let (kind, answer) = (AckKind::Part, Answer::Accepted);
        self.push(device, PendingAck::new(connection, 0, kind, answer), payload);
    }

    /// The messages from `first` on, whose acks are `acks`.
    pub(crate) fn tail(&self, first: usize, acks: impl Iterator<Item = PendingAck>) -> Self {
        let mut tail = Self::default();
        for (message, ack) in (first..).zip(acks) {
            self.copy_rows(message, &mut tail.batch);
            tail.push(self.device(message), ack, self.payload(message));
        }
        tail
    }

    fn before(&self, message: usize) -> Span {
        message.checked_sub(1).map(|before| self.spans[before]).unwrap_or_default()
    }
}

/// Adds rows of a batch to another one.
pub(crate) fn copy_rows(from: &Batch, rows: Range<usize>, to: &mut Batch) {
    let mut builder = to.builder();
    for row in rows.map(|row| from.row(row)) {
        row.fields().for_each(|field| builder.field(field.key, field.value));
        builder.row(row.series(), row.ts());
    }
    builder.finish();
}
