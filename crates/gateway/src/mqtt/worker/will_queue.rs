//! Wills that wait to be published.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use model::Timestamp;

use super::super::acks::ConnectionKey;
use super::super::clients::WillOutcome;
use super::super::limits;
use super::super::session::Connected;

/// Wills of sessions that have ended, oldest first.
#[derive(Debug, Default)]
pub(super) struct WillQueue {
    wills: VecDeque<Will>,
    /// Wills with a delay, and when each is due.
    delayed: Vec<(Due, Will)>,
    bytes: usize,
}

/// The second at which a will is due, and the outcome of it before.
type Due = (u32, Arc<WillOutcome>);

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
    pub(super) fn add_delayed(&mut self, will: Will, due: Due, bytes_max: usize) -> Result<(), Will> {
        if self.bytes + will.bytes() > bytes_max {
            return Err(will);
        }
        self.bytes += will.bytes();
        self.delayed.push((due, will));
        Ok(())
    }

    /// Moves the wills that are due to those that wait, and drops those of clients that have come back. Calls `forget` for both.
    pub(super) fn take_due(&mut self, now_s: u32, forget: impl Fn(&Will, &Arc<WillOutcome>)) {
        let is_over =
            |(due_s, outcome): &Due| *due_s <= now_s || outcome.is_continued() || outcome.has_ended();
        for ((_, outcome), will) in self.delayed.extract_if(.., |(due, _)| is_over(due)) {
            forget(&will, &outcome);
            match outcome.is_continued() {
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
