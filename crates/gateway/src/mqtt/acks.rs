//! Acks that wait for durability.
//!
//! Invariant 1: within a session acks leave in the order in which the messages arrived [MQTT-4.6.0-2]. A session
//! belongs to one durability class, and each class has one queue, so the queue's order is the session's order.
//! Invariant 2: an ack leaves only when the store has reached the sequence at which its batch ended, and keeps the rows of the message.

use std::collections::VecDeque;
use std::time::Instant;

use hub::{ByClass, Durability, KvProgress, Progress, Ticket};

use super::qos2::SharedQos2;

/// Identifies a connection of a worker. `generation` distinguishes a reused slot from its former connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// The kind of an ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// A QoS 0 message: no packet is sent. The entry exists for the latency metric.
    None,
    /// The rows of one device in a message of a gateway. The entry of the message follows.
    Part,
    /// QoS 1.
    PubAck,
    /// QoS 2, first half.
    PubRec,
}

/// An ack that waits for durability.
#[derive(Debug)]
pub(crate) struct PendingAck {
    pub(crate) connection: ConnectionKey,
    pub(crate) packet_id: u16,
    pub(crate) kind: AckKind,
    pub(crate) answer: Answer,
    /// The rows of the message, once they are appended.
    pub(crate) ticket: Ticket,
}

/// The content of an ack.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The message is accepted.
    Accepted,
    /// The message is accepted as the first half of a QoS 2 exchange. Its identifier is marked once the store has it.
    AcceptedQos2(SharedQos2),
    /// The message is a dead letter, and the ack has the reason.
    Refused(Box<Refusal>),
}

impl PendingAck {
    /// An ack of a message that is not appended yet.
    pub(crate) fn new(connection: ConnectionKey, packet_id: u16, kind: AckKind, answer: Answer) -> Self {
        Self { connection, packet_id, kind, answer, ticket: Ticket::after(0) }
    }

    /// Records that the store has the message.
    pub(crate) fn stored(&self) {
        if let Answer::AcceptedQos2(qos2) = &self.answer {
            qos2.lock().mark_stored(self.packet_id);
        }
    }

    /// Records that the store does not have the message: if the peer sends it again, it is a new one.
    pub(crate) fn not_stored(&self) {
        if let Answer::AcceptedQos2(qos2) = &self.answer {
            qos2.lock().remove(self.packet_id);
        }
    }
}

/// A refusal for an MQTT 5 client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: wire::mqtt::ReasonCode,
    pub(crate) text: String,
}

/// The acks of one appended batch.
#[derive(Debug)]
pub(crate) struct AckGroup {
    /// The rows of all messages of the group.
    pub(crate) ticket: Ticket,
    /// What the key-value engine must make durable too; 0 for nothing.
    pub(crate) kv_sequence: u64,
    pub(crate) received: Instant,
    pub(crate) acks: Vec<PendingAck>,
}

impl AckGroup {
    fn is_reached(&self, progress: Progress, class: Durability, kv: KvProgress) -> bool {
        self.ticket.last <= progress.reached(class) && self.kv_sequence <= kv.durable
    }
}

/// The waiting acks of one worker: a queue for each durability class.
#[derive(Debug, Default)]
pub(crate) struct AckQueues {
    by_class: ByClass<VecDeque<AckGroup>>,
    /// Empty vectors for reuse, so a busy worker does not allocate.
    spare: Vec<Vec<PendingAck>>,
}

impl AckQueues {
    /// An empty list for the acks of the next batch.
    pub(crate) fn new_list(&mut self) -> Vec<PendingAck> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back an emptied list.
    pub(crate) fn recycle(&mut self, mut list: Vec<PendingAck>) {
        list.clear();
        if self.spare.len() < 64 {
            self.spare.push(list);
        }
    }

    pub(crate) fn push(&mut self, class: Durability, group: AckGroup) {
        self.by_class[class].push_back(group);
    }

    /// Takes the next group whose sequence the store has reached.
    pub(crate) fn pop_reached(&mut self, progress: Progress, kv: KvProgress) -> Option<AckGroup> {
        Durability::ALL.into_iter().find_map(|class| {
            let queue = &mut self.by_class[class];
            queue.pop_front_if(|group| group.is_reached(progress, class, kv))
        })
    }

    /// Whether the store has reached the sequence of a group.
    pub(crate) fn is_reached(&self, progress: Progress, kv: KvProgress) -> bool {
        Durability::ALL.into_iter().any(|class| {
            let first = self.by_class[class].front();
            first.is_some_and(|group| group.is_reached(progress, class, kv))
        })
    }

    /// Takes the next group, durable or not. For a sealed store.
    pub(crate) fn pop_any(&mut self) -> Option<AckGroup> {
        self.by_class.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_class.iter().all(VecDeque::is_empty)
    }

    pub(crate) fn groups(&self) -> usize {
        self.by_class.iter().map(VecDeque::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(sequence: u64) -> AckGroup {
        AckGroup {
            ticket: Ticket::after(sequence),
            kv_sequence: 0,
            received: Instant::now(),
            acks: Vec::new(),
        }
    }

    #[test]
    fn a_group_leaves_only_when_its_class_is_reached_and_in_order() {
        let mut queues = AckQueues::default();
        for sequence in [5, 9] {
            queues.push(Durability::Fsync, group(sequence));
        }
        queues.push(Durability::Os, group(7));
        let progress = Progress { appended: 20, written: 7, durable: 5, sealed: false };
        let kv = KvProgress::default();
        assert!(queues.is_reached(progress, kv));
        let left: Vec<_> =
            std::iter::from_fn(|| queues.pop_reached(progress, kv)).map(|group| group.ticket.last).collect();
        assert_eq!(left, [7, 5]);
        assert!(!queues.is_reached(progress, kv) && !queues.is_empty());
        assert_eq!(queues.pop_any().map(|group| group.ticket.last), Some(9));
        assert!(queues.is_empty());
    }

    #[test]
    fn a_group_waits_for_the_key_value_engine_too() {
        let mut queues = AckQueues::default();
        queues.push(Durability::Fsync, AckGroup { kv_sequence: 3, ..group(5) });
        let progress = Progress { appended: 5, written: 5, durable: 5, sealed: false };
        let kv = |durable| KvProgress { committed: 3, durable, sealed: false };
        assert!(!queues.is_reached(progress, kv(2)) && queues.pop_reached(progress, kv(2)).is_none());
        assert!(queues.pop_reached(progress, kv(3)).is_some());
    }
}
