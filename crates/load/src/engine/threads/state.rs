//! The state of a segment that all threads share.

use std::iter::Peekable;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::recorder::{Recorder, Window};
use crate::schedule::Schedule;

/// Stands for "never".
pub(super) const NEVER: u64 = u64::MAX;

/// The source of the operations of a group.
#[derive(Debug)]
pub(super) enum Feed {
    Closed { pause: Duration },
    Idle,
    Open(Mutex<Peekable<Schedule>>),
}

/// The state that all threads of a segment share.
#[derive(Debug)]
pub(super) struct SegmentState {
    pub(super) at: Instant,
    pub(super) wall_ms: u64,
    pub(super) window: Window,
    /// With a seed, sessions restart their random numbers.
    pub(super) seed: Option<u64>,
    pub(super) feeds: Vec<Feed>,
    /// The recorders, which several threads share: an entry takes little time, and a histogram takes much memory.
    pub(super) recorders: Vec<Mutex<Recorder>>,
    /// The time after which overdue operations are not sent.
    pub(super) deadline_ns: AtomicU64,
    /// Whether the main thread has cancelled connections. Failures after that are caused by it.
    pub(super) is_cancelled: AtomicBool,
    pub(super) first_loss_ns: AtomicU64,
}

impl SegmentState {
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.at.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn recorder(&self, number: u32) -> &Mutex<Recorder> {
        &self.recorders[number as usize % self.recorders.len()]
    }

    pub(super) fn lost(&self, now_ns: u64) {
        self.first_loss_ns.fetch_min(now_ns, Ordering::Relaxed);
    }
}
