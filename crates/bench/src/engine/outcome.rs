//! What an engine tells while it runs, and what a run brought.

use std::time::{Duration, Instant};

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
