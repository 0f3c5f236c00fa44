//! The batch that a worker collects in one pass of its event loop: the rows and acks of many messages.
//!
//! All messages of a pass form one batch, because one append and one sync serve them all. If the store refuses rows, one message
//! must not take the others with it. So the batch records where each message ends, and where its payload is: in the worker's buffer
//! of what it has read, which keeps the bytes until the batch is appended.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hub::RefusedRow;
use hub::registry::Device;
use model::Batch;

use super::acks::{AckKind, Answer, ConnectionKey, PendingAck, Refusal};
use super::limits;

/// Rows and acks of one pass of the event loop with the same durability class.
#[derive(Debug, Default)]
pub(crate) struct IngestBatch {
    pub(crate) batch: Batch,
    /// One ack for every message, in the order of the rows.
    pub(crate) acks: Vec<PendingAck>,
    messages: Vec<Entry>,
    senders: Vec<Sender>,
    /// Payloads that are not in the buffer of the worker.
    payloads: Vec<u8>,
    /// The end of the last payload that is.
    input_end: usize,
    /// What the acks of these messages say once the store has the batch: their rows were refused.
    refusals: BTreeMap<usize, Refusal>,
}

/// A message.
#[derive(Debug, Clone)]
struct Entry {
    /// The end of its rows.
    rows_end: usize,
    source: Source,
    /// Bytes of the payload, if the message counts: it is not a repeated one, nor a part of another one.
    counted: Option<usize>,
}

/// What the rows of a message were made of.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Telemetry {
        /// The topic under which it came.
        topic: &'static str,
        payload: PayloadRef,
    },
    /// The rows have no other form, because they are dead letters. Or there are none.
    DeadLetters,
}

/// Where a payload is.
#[derive(Debug, Clone)]
pub(crate) enum PayloadRef {
    /// In the buffer of the worker.
    Input(Range<usize>),
    /// In the batch.
    Copied(Range<usize>),
}

/// The sender of the messages before `messages_end`.
#[derive(Debug)]
struct Sender {
    device: Arc<Device>,
    messages_end: usize,
}

/// Messages, and the bytes of their payloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl IngestBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    /// Number of completed messages, parts and repeated ones among them.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Where the worker may overwrite its buffer: behind the payloads of these messages.
    pub(crate) fn input_end(&self) -> usize {
        self.input_end
    }

    /// The messages that count.
    pub(crate) fn accepted(&self) -> Accepted {
        let mut accepted = Accepted::default();
        for bytes in self.messages.iter().filter_map(|message| message.counted) {
            accepted.messages += 1;
            accepted.bytes += bytes as u64;
        }
        accepted
    }

    /// Completes a message whose rows are in the batch. `counted` has the bytes of its payload.
    pub(crate) fn push(
        &mut self,
        device: &Arc<Device>,
        ack: PendingAck,
        source: Source,
        counted: Option<usize>,
    ) {
        if let Source::Telemetry { payload: PayloadRef::Input(range), .. } = &source {
            self.input_end = self.input_end.max(range.end);
        }
        self.acks.push(ack);
        self.messages.push(Entry { rows_end: self.batch.len(), source, counted });
        match self.senders.last_mut() {
            Some(last) if Arc::ptr_eq(&last.device, device) => last.messages_end = self.acks.len(),
            _ => {
                self.senders.push(Sender { device: Arc::clone(device), messages_end: self.acks.len() });
            }
        }
    }

    /// Completes the rows of one device in a message that has several. The message itself comes after its parts, with the ack.
    pub(crate) fn push_part(&mut self, device: &Arc<Device>, connection: ConnectionKey, source: Source) {
        let (kind, answer) = (AckKind::Part, Answer::Accepted);
        self.push(device, PendingAck::new(connection, 0, kind, answer), source, None);
    }

    /// Copies a payload that is not in the buffer of the worker.
    pub(crate) fn copied(&mut self, payload: &[u8]) -> PayloadRef {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(payload);
        PayloadRef::Copied(start..self.payloads.len())
    }

    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.acks.clear();
        self.messages.clear();
        self.senders.clear();
        self.payloads.clear();
        self.payloads.shrink_to(limits::PASS_BYTES_MAX);
        self.input_end = 0;
        self.refusals.clear();
    }

    /// The rows of a message.
    pub(crate) fn rows(&self, message: usize) -> Range<usize> {
        let start = message.checked_sub(1).map_or(0, |before| self.messages[before].rows_end);
        start..self.messages[message].rows_end
    }

    /// Topic and payload of telemetry; `None` for a message that has no other form than its rows. `input` is the buffer of the
    /// worker.
    pub(crate) fn telemetry<'a>(
        &'a self,
        message: usize,
        input: &'a [u8],
    ) -> Option<(&'static str, &'a [u8])> {
        match &self.messages[message].source {
            Source::Telemetry { topic, payload: PayloadRef::Input(range) } => {
                Some((topic, &input[range.clone()]))
            }
            Source::Telemetry { topic, payload: PayloadRef::Copied(range) } => {
                Some((topic, &self.payloads[range.clone()]))
            }
            Source::DeadLetters => None,
        }
    }

    /// The sender of a message.
    pub(crate) fn device(&self, message: usize) -> &Arc<Device> {
        let sender = self.senders.partition_point(|sender| sender.messages_end <= message);
        &self.senders[sender].device
    }

    /// The message after the parts of a message, which has the ack.
    pub(crate) fn message_of(&self, part: usize) -> usize {
        let is_message = |of: &usize| self.acks[*of].kind != AckKind::Part;
        (part..self.acks.len()).find(is_message).expect("BUG: a message comes after its parts")
    }

    /// The messages with these rows, and the rows of each.
    pub(crate) fn messages_of<'a>(
        &self,
        refused: &'a [RefusedRow],
    ) -> impl Iterator<Item = (usize, &'a [RefusedRow])> {
        let message_of = |row: usize| self.messages.partition_point(|message| message.rows_end <= row);
        let of_messages = refused.chunk_by(move |one, next| message_of(one.row) == message_of(next.row));
        of_messages.map(move |rows| (message_of(rows[0].row), rows))
    }

    /// Replaces all rows. `rows_ends` has the new end of the rows of each message.
    pub(crate) fn replace_rows(&mut self, batch: Batch, rows_ends: impl IntoIterator<Item = usize>) {
        self.batch = batch;
        self.messages.iter_mut().zip(rows_ends).for_each(|(message, end)| message.rows_end = end);
    }

    /// The rows of a message are dead letters now, or the message has none.
    pub(crate) fn set_dead_letters(&mut self, message: usize) {
        self.messages[message].source = Source::DeadLetters;
    }

    /// The store keeps a message in no form. It does not count.
    pub(crate) fn give_up(&mut self, message: usize) {
        let entry = &mut self.messages[message];
        (entry.source, entry.counted) = (Source::DeadLetters, None);
        // The worker closes the connection, so the ack leaves no more, and the peer sends the message again as a new one.
        self.acks[message].not_stored();
        self.acks[message].answer = Answer::Accepted;
    }

    /// Keeps what the ack of a message says once the store has the batch. The first refusal of a message counts.
    pub(crate) fn refuse(&mut self, message: usize, refusal: Refusal) {
        self.refusals.entry(message).or_insert(refusal);
    }

    pub(crate) fn take_refusals(&mut self) -> BTreeMap<usize, Refusal> {
        std::mem::take(&mut self.refusals)
    }

    /// Takes the second half of the messages. A message stays together with its parts. `None` if there is one message.
    pub(crate) fn split(&mut self) -> Option<Self> {
        let ends = (1..self.len()).filter(|end| self.acks[end - 1].kind != AckKind::Part);
        let middle = ends.min_by_key(|end| end.abs_diff(self.len() / 2))?;
        let whole = std::mem::take(self);
        let (mut first, mut second) = (Self::default(), Self::default());
        first.take(whole, Some((middle, &mut second)));
        *self = first;
        Some(second)
    }

    /// Adds the messages of another batch.
    pub(crate) fn append(&mut self, other: Self) {
        match self.is_empty() {
            true => *self = other,
            false => self.take(other, None),
        }
    }

    /// Adds the messages of another batch, and those from a number on to a second batch.
    fn take(&mut self, mut other: Self, mut second: Option<(usize, &mut Self)>) {
        let mut refusals = other.take_refusals();
        for (message, ack) in std::mem::take(&mut other.acks).into_iter().enumerate() {
            let to = match &mut second {
                Some((from, second)) if message >= *from => &mut **second,
                _ => &mut *self,
            };
            to.batch.extend_from(&other.batch, other.rows(message));
            let Entry { source, counted, .. } = other.messages[message].clone();
            let source = match source {
                Source::Telemetry { topic, payload: PayloadRef::Copied(range) } => {
                    Source::Telemetry { topic, payload: to.copied(&other.payloads[range]) }
                }
                other => other,
            };
            if let Some(refusal) = refusals.remove(&message) {
                to.refuse(to.len(), refusal);
            }
            to.push(other.device(message), ack, source, counted);
        }
    }
}
