//! The messages between the main thread and the workers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::{Ended, Slice};
use crate::recorder::{Latency, Recorder, Second};

/// The order to start the load of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentStart {
    pub(super) segment: usize,
    /// With a slice the segment lasts as long as the slice.
    pub(super) slice: Option<Slice>,
    pub(super) at: Instant,
    /// The same moment by the wall clock, milliseconds since the epoch.
    pub(super) wall_ms: u64,
}

/// A message of a worker to the main thread.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Opened { failures: BTreeMap<String, u64>, handshakes: Latency },
    Second { worker: usize, second: Second },
    Segment { worker: usize, done: Box<WorkerSegment> },
}

/// The measurements of one worker in one segment.
#[derive(Debug)]
pub(super) struct WorkerSegment {
    pub(super) recorder: Recorder,
    /// The actual length of the measured part.
    pub(super) measured: Duration,
    pub(super) ended: Ended,
    pub(super) first_loss_ns: Option<u64>,
}
