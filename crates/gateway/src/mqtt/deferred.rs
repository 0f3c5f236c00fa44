//! Answers that wait until the key-value engine has made a change durable: SUBACK and UNSUBACK of sessions that outlive their
//! connections.

use std::collections::VecDeque;

use super::acks::ConnectionKey;

/// An answer that waits.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// The sequence of the change.
    pub(crate) sequence: u64,
    pub(crate) connection: ConnectionKey,
    pub(crate) bytes: Vec<u8>,
}

/// Answers that wait, in the order of their sequences.
pub(crate) type DeferredQueue = VecDeque<Deferred>;
