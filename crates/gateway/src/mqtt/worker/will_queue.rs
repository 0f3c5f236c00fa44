//! Wills that wait to be published.

use std::collections::VecDeque;
use std::net::SocketAddr;

use model::Timestamp;

use super::super::acks::ConnectionKey;
use super::super::limits;
use super::super::session::Connected;

/// Wills of sessions that have ended, oldest first.
#[derive(Debug, Default)]
pub(super) struct WillQueue {
    wills: VecDeque<Will>,
    bytes: usize,
}

/// A will that waits.
#[derive(Debug)]
pub(super) struct Will {
    pub(super) session: Box<Connected>,
    /// The closed connection.
    pub(super) connection: ConnectionKey,
    pub(super) peer: SocketAddr,
    /// When the session ended.
    pub(super) received: Timestamp,
}

impl Will {
    fn bytes(&self) -> usize {
        limits::LATE_WILL_BYTES + self.session.will_bytes()
    }
}

impl WillQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.wills.is_empty()
    }

    pub(super) fn take_first(&mut self) -> Option<Will> {
        let first = self.wills.pop_front()?;
        self.bytes -= first.bytes();
        Some(first)
    }

    pub(super) fn put_first(&mut self, will: Will) {
        self.bytes += will.bytes();
        self.wills.push_front(will);
    }

    /// Adds a will. Returns it if the queue has no room.
    pub(super) fn add(&mut self, will: Will, bytes_max: usize) -> Result<(), Will> {
        if self.bytes + will.bytes() > bytes_max {
            return Err(will);
        }
        self.bytes += will.bytes();
        self.wills.push_back(will);
        Ok(())
    }
}
