//! Packet identifiers of QoS 2 messages that came and were not yet released [MQTT-4.3.3-10].
//!
//! A repeated message may only be answered when the first one is kept. So an identifier is noted when its message
//! enters a batch, counts when the store has taken the batch, and is struck out when the store has not.

use std::collections::HashMap;
use std::sync::Arc;

use hub::Durability;
use parking_lot::Mutex;

/// The identifiers of a session, shared by its present and its former connection.
pub(crate) type ReceivedIds = Arc<Mutex<Received>>;

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In a batch that the store has not taken yet.
    Submitted(Turn),
    /// The store has it.
    Taken,
}

/// Which batch: every worker has one of each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) worker: u16,
    pub(crate) class: Durability,
}

/// The identifiers of a session.
#[derive(Debug, Default)]
pub(crate) struct Received {
    ids: HashMap<u16, Phase>,
}

impl Received {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn phase(&self, packet_id: u16) -> Option<Phase> {
        self.ids.get(&packet_id).copied()
    }

    pub(crate) fn submit(&mut self, packet_id: u16, turn: Turn) {
        self.ids.insert(packet_id, Phase::Submitted(turn));
    }

    /// The store has the message. Nothing happens if the peer has released it since.
    pub(crate) fn take(&mut self, packet_id: u16) {
        if let Some(phase) = self.ids.get_mut(&packet_id) {
            *phase = Phase::Taken;
        }
    }

    /// The message was released, or is not kept; says whether the identifier was known.
    pub(crate) fn remove(&mut self, packet_id: u16) -> bool {
        self.ids.remove(&packet_id).is_some()
    }
}
