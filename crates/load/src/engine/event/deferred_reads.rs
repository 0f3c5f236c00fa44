//! Deferred reads. In an open loop that does not react to answers, a wake-up for each answer costs more than its
//! processing. The worker therefore leaves answers in the kernel for a short time and reads several of them when it
//! sends anyway. Latencies stay exact, because the kernel stamps each answer when it arrives (see
//! [`super::timestamped_reader`]). Where operations come due at ticks of a timer, the worker reads once per tick.

use crate::engine::Load;
use crate::limits::{ANSWERS_DEFERRED_MAX_US, ANSWERS_DEFERRED_TICK_MAX_US, ANSWERS_SHARING_MAX};

/// The longest time for which answers may wait in the kernel, nanoseconds; 0 to read them at once. `groups` holds the
/// number of connections that share each load.
pub(super) fn deferral_ns(loads: &[Load], groups: &[u32]) -> u64 {
    let longest_ns = longest_us(loads) * 1_000;
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

/// The upper bound for all loads, microseconds. Where every open loop has a timer it is the distance of two ticks.
fn longest_us(loads: &[Load]) -> u64 {
    let timer = |load: &Load| if let Load::Open { timer_us, .. } = load { Some(*timer_us) } else { None };
    let shortest_us = loads.iter().filter_map(timer).min().unwrap_or(0);
    u64::from(shortest_us).clamp(ANSWERS_DEFERRED_MAX_US, ANSWERS_DEFERRED_TICK_MAX_US)
}

/// The next step of a worker that has sent everything that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Read the answers that have arrived: they have waited for too long, or would before the next operation is due.
    Read,
    /// Sleep until the next operation is due. Answers wait meanwhile.
    Sleep,
    /// Wait for answers as well: the next operation is due too late for them.
    Poll,
}

/// Whether answers wait in the kernel, and for how long.
#[derive(Debug, Default)]
pub(super) struct DeferredReads {
    pub(super) longest_ns: u64,
    /// The time of the latest read.
    pub(super) read_ns: u64,
    /// Connections that may be blocked by their server.
    pub(super) stuck: Vec<u32>,
}

impl DeferredReads {
    pub(super) fn new(longest_ns: u64) -> Self {
        Self { longest_ns, ..Self::default() }
    }

    /// The step to take when the next operation is due in `timeout_ns`.
    pub(super) fn step(&self, now_ns: u64, timeout_ns: u64, has_read: bool) -> WaitStep {
        if now_ns + timeout_ns <= self.read_ns + self.longest_ns {
            WaitStep::Sleep
        } else if !has_read {
            WaitStep::Read
        } else if timeout_ns > self.longest_ns {
            WaitStep::Poll
        } else {
            WaitStep::Sleep
        }
    }

    /// Whether answers may wait: the load allows it, and no connection is blocked by its server.
    pub(super) fn may_wait(&mut self, is_stuck: impl Fn(u32) -> bool) -> bool {
        self.stuck.retain(|index| is_stuck(*index));
        self.longest_ns > 0 && self.stuck.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{AfterReopen, Close, ReopenTrigger};
    use crate::schedule::{Arrivals, Schedule};

    #[test]
    fn answers_do_not_wait_while_a_connection_is_stuck() {
        let mut deferred = DeferredReads::new(500_000);
        assert!(deferred.may_wait(|_| true), "nobody was");
        deferred.stuck.extend([3, 5]);
        assert!(!deferred.may_wait(|index| index == 5));
        assert!(deferred.may_wait(|_| false), "the last has gone on");
        assert!(deferred.stuck.is_empty());
        assert!(!DeferredReads::new(0).may_wait(|_| false));
    }

    #[test]
    fn answers_are_read_when_they_would_wait_too_long() {
        let deferred = DeferredReads { longest_ns: 500, read_ns: 1_000, stuck: Vec::new() };
        assert_eq!(deferred.step(1_100, 400, false), WaitStep::Sleep);
        assert_eq!(deferred.step(1_100, 401, false), WaitStep::Read);
        assert_eq!(deferred.step(1_100, 401, true), WaitStep::Sleep);
        assert_eq!(deferred.step(1_000, 501, true), WaitStep::Poll);
    }

    /// One second of 10,000 connections on ticks of 2 ms; a send takes 5 us, an answer 2 us, and every sleep ends 30 us
    /// late.
    #[test]
    fn a_tick_is_one_batch_of_sends_one_look_at_answers_and_one_sleep() {
        let load = Load::Open { rate: 10_000.0, arrivals: Arrivals::Poisson, timer_us: 2_000, seed: 7 };
        let mut schedule = Schedule::new(Arrivals::Poisson, 10_000, 10_000.0, 7).on_timer(2_000).peekable();
        let mut deferred = DeferredReads::new(deferral_ns(&[load], &[10_000]));
        let (mut now_ns, mut sent, mut answered) = (0, 0, 0);
        let (mut reads, mut sleeps) = (0, 0);
        while now_ns < 1_000_000_000 {
            while schedule.next_if(|planned| planned.at_ns <= now_ns).is_some() {
                sent += 1;
                now_ns += 5_000;
            }
            let next_ns = schedule.peek().unwrap().at_ns;
            if deferred.step(now_ns, next_ns.saturating_sub(now_ns), false) == WaitStep::Read {
                deferred.read_ns = now_ns;
                now_ns += 2_000 * (sent - answered);
                (reads, answered) = (reads + 1, sent);
            }
            let step = deferred.step(now_ns, next_ns.saturating_sub(now_ns), true);
            assert_eq!(step, WaitStep::Sleep, "nobody is woken by answers");
            now_ns = now_ns.max(next_ns + 30_000);
            sleeps += 1;
        }
        // Before the first tick there is nothing to read.
        assert_eq!((reads, sleeps), (499, 500));
        assert!((9_700..10_300).contains(&sent), "{sent}");
    }

    #[test]
    fn answers_wait_where_nothing_follows_from_them_and_they_do_not_meet() {
        let on_timer = |rate, timer_us| Load::Open { rate, arrivals: Arrivals::Poisson, timer_us, seed: 1 };
        let open = |rate| on_timer(rate, 0);
        assert_eq!(deferral_ns(&[open(10_000.0)], &[10_000]), 500_000);
        assert_eq!(deferral_ns(&[open(10_000.0)], &[100]), 100_000, "one in a hundred comes within it");
        assert_eq!(deferral_ns(&[open(10_000.0), Load::Idle], &[10_000, 5]), 500_000);
        assert_eq!(deferral_ns(&[open(10_000.0), open(1_000.0)], &[10_000, 1]), 10_000);
        let closed = Load::Closed { window: 1, pause: Duration::ZERO };
        assert_eq!(deferral_ns(&[open(10_000.0), closed], &[10_000, 1]), 0);
        let (close, then) = (Close::Fin, AfterReopen::Keep);
        let reopen = Load::Reopen { when: ReopenTrigger::Once, close, class: 0, then };
        assert_eq!(deferral_ns(&[reopen], &[1]), 0);
        let ticks = on_timer(10_000.0, 2_000);
        assert_eq!(deferral_ns(&[ticks, Load::Idle], &[10_000, 5]), 2_000_000, "from tick to tick");
        assert_eq!(deferral_ns(&[ticks], &[1_000]), 1_000_000, "one in a hundred comes within it");
        assert_eq!(deferral_ns(&[ticks, open(1.0)], &[10_000, 1]), 500_000, "one has no ticks");
        assert_eq!(deferral_ns(&[on_timer(10_000.0, 100)], &[10_000]), 500_000, "several ticks");
        assert_eq!(deferral_ns(&[on_timer(1.0, 1_000_000)], &[10_000]), 10_000_000, "a loss is noticed");
    }
}
