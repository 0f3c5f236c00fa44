//! Answers that wait in the kernel. In an open loop in which nothing follows from an answer, being woken for each costs more
//! than all that is done for it; answers are then read a few at a time, when something is sent anyway. Their times are the
//! kernel's (see [`super::arrival`]), so nothing of it is seen in a latency.

use std::thread;
use std::time::Duration;

use super::connection::Connection;
use super::running::Pace;
use super::worker::Worker;
use crate::driver::Protocol;
use crate::engine::Load;
use crate::error::Result;
use crate::limits::{ANSWERS_HELD_MAX_US, ANSWERS_SHARING_MAX};

/// How long answers may wait in the kernel, nanoseconds; 0 when they are to be read at once. `groups` says how many connections
/// share each load.
pub(super) fn hold_ns(loads: &[Load], groups: &[u32]) -> u64 {
    let longest_ns = ANSWERS_HELD_MAX_US * 1_000;
    let of_group = |(load, connections): (&Load, &u32)| match load {
        Load::Open { rate, .. } => {
            let gap_ns = 1e9 * f64::from(*connections) / rate;
            longest_ns.min((gap_ns * ANSWERS_SHARING_MAX) as u64)
        }
        Load::Idle => longest_ns,
        Load::Closed { .. } | Load::Reopen { .. } | Load::Sample { .. } => 0,
    };
    loads.iter().zip(groups).map(of_group).min().unwrap_or(0)
}

/// Whether answers wait, and for how long.
#[derive(Debug, Default)]
pub(super) struct Hold {
    longest_ns: u64,
    /// When sockets were asked for answers.
    read_ns: u64,
    /// Connections that wait for their server to go on, some of them no longer.
    stuck: Vec<u32>,
}

impl Hold {
    pub(super) fn new(longest_ns: u64) -> Self {
        Self { longest_ns, ..Self::default() }
    }

    /// Whether answers may wait: they may, and nobody is stuck any more of those that were.
    fn may_wait(&mut self, is_stuck: impl Fn(u32) -> bool) -> bool {
        self.stuck.retain(|index| is_stuck(*index));
        self.longest_ns > 0 && self.stuck.is_empty()
    }
}

impl<S> Connection<S> {
    /// Whether something is to be sent that its window or the kernel did not let go: an answer would.
    fn is_stuck(&self) -> bool {
        self.held || self.is_blocked()
    }
}

impl<P: Protocol> Worker<'_, P> {
    /// Remembers a connection that waits for its server.
    pub(super) fn note_stuck(&mut self, index: u32) {
        if self.hold.longest_ns > 0 && self.connections[index as usize].is_stuck() {
            self.hold.stuck.push(index);
        }
    }

    fn may_hold(&mut self) -> bool {
        let connections = &self.connections;
        let may_wait = self.hold.may_wait(|index| connections[index as usize].is_stuck());
        may_wait && self.pending == 0 && !self.has_dirty()
    }

    /// Waits for what is due next and reads answers: at once, or when they have waited long enough.
    pub(super) fn await_next(&mut self, pace: &Pace) -> Result<()> {
        let mut now_ns = self.now_ns();
        let mut timeout_ns = self.until_next_ns(pace, now_ns);
        if !self.may_hold() || !self.ear.has_stamps() {
            return self.turn(timeout_ns);
        }
        if now_ns + timeout_ns > self.hold.read_ns + self.hold.longest_ns {
            self.turn(0)?;
            self.hold.read_ns = now_ns;
            now_ns = self.now_ns();
            timeout_ns = self.until_next_ns(pace, now_ns);
            if timeout_ns > self.hold.longest_ns || !self.may_hold() {
                return self.turn(timeout_ns);
            }
        }
        if timeout_ns > 0 {
            thread::sleep(Duration::from_nanos(timeout_ns));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Close, Then};
    use crate::schedule::Arrivals;

    #[test]
    fn answers_do_not_wait_while_a_connection_is_stuck() {
        let mut hold = Hold::new(500_000);
        assert!(hold.may_wait(|_| true), "nobody was");
        hold.stuck.extend([3, 5]);
        assert!(!hold.may_wait(|index| index == 5));
        assert!(hold.may_wait(|_| false), "the last has gone on");
        assert!(hold.stuck.is_empty());
        assert!(!Hold::new(0).may_wait(|_| false));
    }

    #[test]
    fn answers_wait_where_nothing_follows_from_them_and_they_do_not_meet() {
        let open = |rate| Load::Open { rate, arrivals: Arrivals::Poisson, seed: 1 };
        assert_eq!(hold_ns(&[open(10_000.0)], &[10_000]), 500_000);
        assert_eq!(hold_ns(&[open(10_000.0)], &[100]), 100_000, "one in a hundred comes within it");
        assert_eq!(hold_ns(&[open(10_000.0), Load::Idle], &[10_000, 5]), 500_000);
        assert_eq!(hold_ns(&[open(10_000.0), open(1_000.0)], &[10_000, 1]), 10_000);
        let closed = Load::Closed { window: 1, pause: Duration::ZERO };
        assert_eq!(hold_ns(&[open(10_000.0), closed], &[10_000, 1]), 0);
        let (close, then) = (Close::Fin, Then::Keep);
        let reopen = Load::Reopen { rate: None, arrivals: Arrivals::Fixed, seed: 1, close, class: 0, then };
        assert_eq!(hold_ns(&[reopen], &[1]), 0);
    }
}
