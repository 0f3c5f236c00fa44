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
    /// Wills with a delay, and the second at which each is due.
    delayed: Vec<(u32, Will)>,
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

    /// Adds a will that is due at a second of the door's clock. Returns it if the queue has no room.
    pub(super) fn add_delayed(&mut self, will: Will, due_s: u32, bytes_max: usize) -> Result<(), Will> {
        if self.bytes + will.bytes() > bytes_max {
            return Err(will);
        }
        self.bytes += will.bytes();
        self.delayed.push((due_s, will));
        Ok(())
    }

    /// Moves the wills that are due to those that wait, except those of clients that have come back.
    pub(super) fn take_due(&mut self, now_s: u32, has_come_back: impl Fn(&Will) -> bool) {
        for (_, will) in self.delayed.extract_if(.., |(due_s, _)| *due_s <= now_s) {
            match has_come_back(&will) {
                true => self.bytes -= will.bytes(),
                false => self.wills.push_back(will),
            }
        }
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
