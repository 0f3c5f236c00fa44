//! What an engine tells while it runs, and what a run brought.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Turns;
use crate::recorder::{Latency, Recorder, Second};

/// What a run tells while it goes on, to a progress display and to whoever samples the server.
#[derive(Debug)]
pub enum Event {
    /// So many connections are open.
    Connecting(u64),
    /// All are open; the load of this segment starts now.
    Started {
        /// Index of the segment.
        segment: usize,
        /// Start of its load.
        at: Instant,
    },
    /// A second of all workers together.
    Second(Box<Second>),
    /// Something that whoever looks on may want to know.
    Note(String),
    /// Nothing happened for a moment; lets the receiver keep time.
    Tick,
}

/// Counters all threads see, the wish to end, and who leads the run through turns if somebody does.
#[derive(Debug, Default)]
pub struct Shared {
    opened: AtomicU64,
    completed: AtomicU64,
    polled_ns: AtomicU64,
    stop: AtomicBool,
    turns: Option<Arc<dyn Turns>>,
}

impl Shared {
    /// For a run that takes turns with another.
    pub fn in_turns(turns: Arc<dyn Turns>) -> Self {
        Self { turns: Some(turns), ..Self::default() }
    }

    /// Operations completed so far.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Time of all threads together in which they looked at their sockets, found nothing and had nothing to do
    /// ([`super::Plan::busy_poll_us`]).
    pub fn polled(&self) -> Duration {
        Duration::from_nanos(self.polled_ns.load(Ordering::Relaxed))
    }

    /// Connections opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Asks the run to end now; what was measured so far is its result.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn turns(&self) -> Option<&dyn Turns> {
        self.turns.as_deref()
    }

    pub(crate) fn add_completed(&self, count: u64) {
        self.completed.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_polled(&self, ns: u64) {
        self.polled_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a segment came to its end. What is worse is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// No session has another operation.
    Finished,
    /// Its time was over.
    Planned,
    /// [`Shared::stop`] was called.
    Stopped,
    /// The server said nothing for [`super::Plan::silence`].
    Silent,
    /// No connection is left.
    AllLost,
}

/// What one segment brought.
#[derive(Debug, Clone)]
pub struct SegmentOutcome {
    /// Histograms and counters.
    pub recorder: Recorder,
    /// Start of its load, milliseconds since the epoch.
    pub started_ms: u64,
    /// Length of the measured part as it was.
    pub measured: Duration,
    /// How it ended.
    pub ended: Ended,
    /// When the first connection was lost, seconds after the start of its load.
    pub first_loss_s: Option<f64>,
}

impl SegmentOutcome {
    /// Adds what came after it with the same connections.
    pub(super) fn follow(&mut self, next: &Self) {
        self.recorder.merge(&next.recorder);
        self.first_loss_s =
            self.first_loss_s.or_else(|| Some(self.measured.as_secs_f64() + next.first_loss_s?));
        self.measured += next.measured;
        self.ended = self.ended.max(next.ended);
    }
}

/// What a run brought.
#[derive(Debug)]
pub struct Outcome<S> {
    /// Segments that were begun.
    pub segments: Vec<SegmentOutcome>,
    /// What the driver remembers of each connection, by number.
    pub sessions: Vec<S>,
    /// Time to open all connections.
    pub connect_time: Duration,
    /// Durations of the handshakes, TCP connect to readiness.
    pub handshakes: Latency,
}
