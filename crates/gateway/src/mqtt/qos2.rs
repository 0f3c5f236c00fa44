//! Packet identifiers of QoS 2 messages that the client has published and not yet released [MQTT-4.3.3-10].
//!
//! The session may answer a repeated message only if the store has the first one. So it records an identifier when the
//! message enters a batch, marks it as stored when the store has accepted the batch, and removes it if the store has not.

use std::collections::HashMap;
use std::sync::Arc;

use hub::Durability;
use parking_lot::Mutex;

/// The identifiers of a session. Its present and its former connection share them.
pub(crate) type SharedQos2 = Arc<Mutex<Qos2Inbound>>;

/// The state of a QoS 2 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In a batch that the store has not accepted yet.
    Submitted(BatchRef),
    /// The store has it.
    Stored,
}

/// Names a batch: every worker has one batch per durability class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchRef {
    pub(crate) worker: u16,
    pub(crate) class: Durability,
}

/// The identifiers of a session.
#[derive(Debug, Default)]
pub(crate) struct Qos2Inbound {
    ids: HashMap<u16, Phase>,
}

impl Qos2Inbound {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn phase(&self, packet_id: u16) -> Option<Phase> {
        self.ids.get(&packet_id).copied()
    }

    pub(crate) fn submit(&mut self, packet_id: u16, batch: BatchRef) {
        self.ids.insert(packet_id, Phase::Submitted(batch));
    }

    /// Marks a message as stored. Does nothing if the client has released it.
    pub(crate) fn mark_stored(&mut self, packet_id: u16) {
        if let Some(phase) = self.ids.get_mut(&packet_id) {
            *phase = Phase::Stored;
        }
    }

    /// Removes an identifier that was released, or whose message is not stored. Returns whether it was known.
    pub(crate) fn remove(&mut self, packet_id: u16) -> bool {
        self.ids.remove(&packet_id).is_some()
    }
}
