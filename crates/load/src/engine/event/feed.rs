//! The source of the operations of one group in one segment.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;

use crate::engine::{AfterReopen, Close, FailureWindow, Load, ReopenTrigger};
use crate::schedule::{Planned, Schedule};

/// The next operations of one group of one worker.
#[derive(Debug)]
pub(super) enum Feed {
    /// A closed loop: each answer allows another operation.
    Closed { window: usize, pause_ns: u64 },
    /// No operations.
    Idle,
    /// Operations on a schedule. The devices of the schedule count from `first`.
    Open { schedule: Box<Peekable<Schedule>>, first: u32 },
    /// Connections that are closed and opened again.
    Reopen(Reopen),
    /// One operation on each of some connections.
    Sample { indices: Vec<u32>, next: usize, gap_ns: u64 },
}

/// Connections that are due to be reopened, the one that has waited longest first.
#[derive(Debug)]
pub(super) struct Reopen {
    /// `None` when all connections are due at once at the start; `burst` counts those that are left.
    schedule: Option<Box<Peekable<Schedule>>>,
    burst: u32,
    /// Whether a connection is due as soon as it can be reopened.
    pub(super) again: bool,
    pub(super) close: Close,
    pub(super) class: u16,
    pub(super) then: AfterReopen,
    /// Reopenings that are not due yet.
    left: u64,
    /// The results of the latest attempts, where failures end the load.
    pub(super) failing: Option<FailureWindow>,
    /// Connections that can be reopened, and since when; the longest waiting first.
    pub(super) available: VecDeque<(u32, u64)>,
    /// Intended times of reopenings that wait for a connection.
    pub(super) waiting: VecDeque<u64>,
}

impl Reopen {
    /// Ends the load. Returns the number of reopenings that are left out.
    pub(super) fn give_up(&mut self) -> u64 {
        std::mem::take(&mut self.left)
    }
}

/// An event of a group that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// An operation on a connection of this worker.
    Operation(Planned),
    /// Any connection of the group is to be reopened.
    Reopening { at_ns: u64 },
}

impl Due {
    pub(super) fn at_ns(&self) -> u64 {
        match self {
            Self::Operation(planned) => planned.at_ns,
            Self::Reopening { at_ns } => *at_ns,
        }
    }
}

impl Feed {
    /// `local` are the indices of the group's connections in this worker; the whole group has `of` connections.
    pub(super) fn new(
        load: Load,
        local: &Range<u32>,
        of: u32,
        worker: usize,
        is_open: impl Fn(u32) -> bool,
    ) -> Self {
        let count = local.len() as u32;
        if count == 0 {
            return Self::Idle;
        }
        let schedule = |rate: f64, arrivals, timer_us, seed: u64| {
            let share = rate * f64::from(count) / f64::from(of);
            let seed = seed.wrapping_add(worker as u64);
            Box::new(Schedule::new(arrivals, count, share, seed).on_timer(timer_us).peekable())
        };
        match load {
            Load::Open { rate, arrivals, timer_us, seed } => {
                Self::Open { schedule: schedule(rate, arrivals, timer_us, seed), first: local.start }
            }
            Load::Closed { window, pause } => {
                Self::Closed { window, pause_ns: u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX) }
            }
            Load::Idle => Self::Idle,
            Load::Reopen { when, close, class, then } => Self::Reopen(Reopen {
                schedule: match when {
                    ReopenTrigger::Scheduled { rate, arrivals, seed } => {
                        Some(schedule(rate, arrivals, 0, seed))
                    }
                    ReopenTrigger::Once | ReopenTrigger::Again => None,
                },
                burst: if matches!(when, ReopenTrigger::Scheduled { .. }) { 0 } else { count },
                again: when == ReopenTrigger::Again,
                close,
                class,
                then,
                left: if matches!(then, AfterReopen::Stay(_)) { count.into() } else { u64::MAX },
                failing: if let AfterReopen::Stay(rule) = then {
                    Some(FailureWindow::new(rule))
                } else {
                    None
                },
                available: local.clone().map(|index| (index, 0)).collect(),
                waiting: VecDeque::new(),
            }),
            Load::Sample { every, over } => {
                let open = local.clone().filter(|index| is_open(*index));
                let indices: Vec<u32> = open.step_by(every.max(1) as usize).collect();
                let over_ns = u64::try_from(over.as_nanos()).unwrap_or(u64::MAX);
                let gap_ns = over_ns / (indices.len() as u64).max(1);
                Self::Sample { indices, next: 0, gap_ns }
            }
        }
    }

    /// Whether the load is a closed loop.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Reopen(Reopen { again: true, .. }))
    }

    /// Whether operations come on a schedule.
    pub(super) fn is_scheduled(&self) -> bool {
        !self.is_closed() && !matches!(self, Self::Idle)
    }

    /// Whether a load with an end of its own has ended.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Reopen(reopen) => reopen.left == 0 && reopen.waiting.is_empty(),
            Self::Sample { indices, next, .. } => *next == indices.len(),
            Self::Open { .. } | Self::Closed { .. } | Self::Idle => false,
        }
    }

    /// The time of the next event; `u64::MAX` without one.
    pub(super) fn next_ns(&mut self) -> u64 {
        let schedule = match self {
            Self::Open { schedule, .. } => schedule,
            Self::Reopen(Reopen { left: 0, .. }) => return u64::MAX,
            Self::Reopen(Reopen { schedule: Some(schedule), .. }) => schedule,
            Self::Sample { indices, next, gap_ns } => {
                return if *next < indices.len() { *next as u64 * *gap_ns } else { u64::MAX };
            }
            Self::Reopen(reopen) => return if reopen.burst > 0 { 0 } else { u64::MAX },
            Self::Closed { .. } | Self::Idle => return u64::MAX,
        };
        schedule.peek().map_or(u64::MAX, |planned| planned.at_ns)
    }

    /// Whether the events are operations on open connections.
    pub(super) fn has_operations(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Sample { .. })
    }

    /// Takes the next operation that is due at `last_ns` or before, and no reopening.
    pub(super) fn next_operation(&mut self, last_ns: u64) -> Option<Planned> {
        if !self.has_operations() {
            return None;
        }
        match self.next_due(last_ns)? {
            Due::Operation(planned) => Some(planned),
            Due::Reopening { .. } => unreachable!("BUG: a load of operations opens no connection again"),
        }
    }

    /// Takes the next event that is due at `last_ns` or before.
    pub(super) fn next_due(&mut self, last_ns: u64) -> Option<Due> {
        let until = |planned: &Planned| planned.at_ns <= last_ns;
        match self {
            Self::Open { schedule, first } => {
                let planned = schedule.next_if(until)?;
                Some(Due::Operation(Planned { device: planned.device + *first, ..planned }))
            }
            Self::Reopen(Reopen { left: 0, .. }) => None,
            Self::Reopen(Reopen { schedule: Some(schedule), left, .. }) => {
                let at_ns = schedule.next_if(until)?.at_ns;
                *left -= 1;
                Some(Due::Reopening { at_ns })
            }
            Self::Reopen(reopen) => {
                reopen.burst = reopen.burst.checked_sub(1)?;
                reopen.left -= 1;
                Some(Due::Reopening { at_ns: 0 })
            }
            Self::Sample { indices, next, gap_ns } => {
                let planned = Planned { at_ns: *next as u64 * *gap_ns, device: *indices.get(*next)? };
                if !until(&planned) {
                    return None;
                }
                *next += 1;
                Some(Due::Operation(planned))
            }
            Self::Closed { .. } | Self::Idle => None,
        }
    }
}
