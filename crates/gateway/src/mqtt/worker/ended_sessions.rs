//! The state of what follows the ends of sessions of the broker.

use std::time::Instant;

use hub::Ticket;
use hub::broker::Unconfirmed;

/// What the first worker has begun.
#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    /// A session whose dead letters are not durable.
    pub(super) unconfirmed: Option<Unconfirmed>,
    /// The last dead letters of this worker in the store.
    pub(super) dead_letters: Option<Ticket>,
    /// The work continues at this time, after an error.
    pub(super) paused_until: Option<Instant>,
}

impl EndedSessions {
    /// Whether dead letters must become durable first.
    pub(super) fn await_store(&self) -> bool {
        self.unconfirmed.is_some()
    }
}
