//! Connections whose next message is above a limit of their tenant. Each waits for itself, so that other tenants do not wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::super::acks::ConnectionKey;
use super::super::limits::{HELD_PAUSE, HELD_PAUSE_PER_CONNECTION};

/// The held connections by the time at which they are tried again. Those that were closed meanwhile are among them.
#[derive(Debug, Default)]
pub(super) struct PausedConnections(BinaryHeap<Reverse<(Instant, u32, u32)>>);

impl PausedConnections {
    /// Adds a connection that may continue after `wait`. The more are held, the later each is tried again: trying costs time.
    pub(super) fn push(&mut self, key: ConnectionKey, wait: Duration, now: Instant) {
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let least = HELD_PAUSE.saturating_add(HELD_PAUSE_PER_CONNECTION.saturating_mul(count));
        self.0.push(Reverse((now + wait.max(least), key.slot, key.generation)));
    }

    /// Takes a connection whose time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<ConnectionKey> {
        let Reverse((at, ..)) = self.0.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((_, slot, generation)) = self.0.pop()?;
        Some(ConnectionKey { slot, generation })
    }

    /// When the next connection is tried again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_back_when_their_time_has_come() {
        let (mut held, now) = (PausedConnections::default(), Instant::now());
        let key = |slot| ConnectionKey { slot, generation: 1 };
        held.push(key(1), Duration::from_secs(3), now);
        held.push(key(2), Duration::ZERO, now);
        let due = held.next().unwrap();
        assert!(due >= now + HELD_PAUSE && due < now + Duration::from_secs(1));
        assert_eq!(held.pop_due(now), None);
        assert_eq!((held.pop_due(due), held.pop_due(due)), (Some(key(2)), None));
        let later = now + Duration::from_secs(3);
        assert_eq!((held.pop_due(later), held.next()), (Some(key(1)), None));
    }
}
