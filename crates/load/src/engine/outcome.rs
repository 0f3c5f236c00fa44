//! Progress events of a run, and its outcome.

use std::time::{Duration, Instant};

use crate::recorder::{Latency, Recorder, Second};

/// A progress event of a run, for the progress display and the samplers.
#[derive(Debug)]
pub enum Event {
    /// The number of connections that are open so far.
    Connecting(u64),
    /// All connections are open, and the load of this segment starts.
    Started {
        /// Index of the segment.
        segment: usize,
        /// Start of its load.
        at: Instant,
    },
    /// One second of all workers.
    Second(Box<Second>),
    /// A text for the progress display.
    Note(String),
    /// Nothing happened for a moment. The receiver can check the time.
    Tick,
}

/// How a segment ended. A worse end is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// No session has more operations.
    Finished,
    /// The planned time was over.
    Planned,
    /// [`super::Shared::stop`] was called.
    Stopped,
    /// The server sent nothing for [`super::Plan::silence`].
    Silent,
    /// All connections were lost.
    AllLost,
}

/// The outcome of one segment.
#[derive(Debug, Clone)]
pub struct SegmentOutcome {
    /// Histograms and counters.
    pub recorder: Recorder,
    /// Start of its load, milliseconds since the epoch.
    pub started_ms: u64,
    /// The actual length of the measured part.
    pub measured: Duration,
    /// How it ended.
    pub ended: Ended,
    /// When the first connection was lost, seconds after the start of its load.
    pub first_loss_s: Option<f64>,
}

impl SegmentOutcome {
    /// Adds the outcome of a later segment on the same connections.
    pub(super) fn follow(&mut self, next: &Self) {
        self.recorder.merge(&next.recorder);
        self.first_loss_s =
            self.first_loss_s.or_else(|| Some(self.measured.as_secs_f64() + next.first_loss_s?));
        self.measured += next.measured;
        self.ended = self.ended.max(next.ended);
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome<S> {
    /// Segments that were begun.
    pub segments: Vec<SegmentOutcome>,
    /// The session of each connection, by number.
    pub sessions: Vec<S>,
    /// The time to open all connections.
    pub connect_time: Duration,
    /// The durations of the handshakes, from TCP connect to readiness.
    pub handshakes: Latency,
}
