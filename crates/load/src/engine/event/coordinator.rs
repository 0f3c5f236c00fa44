//! The main thread's part in a run: it starts the segments and merges what the workers measure.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::messages::{SegmentStart, WorkerMessage, WorkerSegment};
use super::now_ms;
use super::seconds::Seconds;
use super::shares::shares;
use crate::engine::segments::each_segment;
use crate::engine::{Ended, Event, Plan, SegmentOutcome, Shared};
use crate::error::{Error, Result};
use crate::recorder::{Latency, Recorder, Window};

const TICK: Duration = Duration::from_millis(100);

/// Starts the segments in the workers and collects their measurements.
pub(super) struct Coordinator<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) from_workers: mpsc::Receiver<WorkerMessage>,
    pub(super) starts: Vec<mpsc::Sender<SegmentStart>>,
    pub(super) began: Instant,
}

pub(super) type CoordinatorResult = (Duration, Latency, Vec<SegmentOutcome>);

impl Coordinator<'_> {
    pub(super) fn run(&mut self, on_event: &mut impl FnMut(Event)) -> Result<CoordinatorResult> {
        let handshakes = self.wait_for_open(on_event)?;
        let connect_time = self.began.elapsed();
        let (run_began, run_began_ms) = (Instant::now(), now_ms());
        let segments = each_segment(self.plan, self.shared, |segment, slice| {
            let at = Instant::now();
            // The monotonic clock decides: a step of the wall clock does not move the times of messages.
            let wall_ms = run_began_ms + u64::try_from((at - run_began).as_millis()).unwrap_or(0);
            on_event(Event::Started { segment, at });
            self.shared.begin_sending(self.starts.len());
            for start in &self.starts {
                // A worker that has ended reports the reason in its result.
                let _ = start.send(SegmentStart { segment, slice, at, wall_ms });
            }
            self.collect(self.plan.segments[segment].in_slice(slice).window(), wall_ms, on_event)
        });
        Ok((connect_time, handshakes, segments))
    }

    fn wait_for_open(&self, on_event: &mut impl FnMut(Event)) -> Result<Latency> {
        let mut reported = 0;
        let mut failures = BTreeMap::new();
        let mut all = Latency::new();
        while reported < self.starts.len() {
            match self.from_workers.recv_timeout(TICK) {
                Ok(WorkerMessage::Opened { failures: some, handshakes }) => {
                    reported += 1;
                    all.merge(&handshakes);
                    some.into_iter().for_each(|(what, count)| *failures.entry(what).or_insert(0) += count);
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Connecting(self.shared.opened())),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.shared.is_stopped() {
            return Err(Error::Stopped);
        }
        if failures.is_empty() {
            return Ok(all);
        }
        let reasons: Vec<String> = failures.iter().map(|(what, count)| format!("{count} x {what}")).collect();
        Err(Error::Connect {
            target: self.plan.target.to_string(),
            opened: self.shared.opened(),
            wanted: shares(self.plan).iter().flatten().map(|range| range.len() as u64).sum(),
            reasons: reasons.join("; "),
        })
    }

    /// Merges the measurements of the workers and passes on their seconds in order, until the last worker is done.
    fn collect(&self, window: Window, started_ms: u64, on_event: &mut impl FnMut(Event)) -> SegmentOutcome {
        let workers = self.starts.len();
        let classes = self.plan.classes.len();
        let mut seconds = Seconds::new(workers, classes);
        let mut outcome = SegmentOutcome {
            recorder: Recorder::new(window, classes),
            started_ms,
            measured: Duration::ZERO,
            ended: Ended::Finished,
            first_loss_s: None,
        };
        let mut done = 0;
        while done < workers {
            match self.from_workers.recv_timeout(TICK) {
                Ok(WorkerMessage::Second { worker, second }) => seconds.add(worker, second),
                Ok(WorkerMessage::Segment { worker, done: part }) => {
                    done += 1;
                    seconds.end(worker);
                    outcome.add(&part);
                }
                Ok(WorkerMessage::Opened { .. }) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            while let Some(second) = seconds.next_complete() {
                on_event(Event::Second(Box::new(second)));
            }
        }
        outcome
    }
}

impl SegmentOutcome {
    fn add(&mut self, part: &WorkerSegment) {
        self.recorder.merge(&part.recorder);
        self.measured = self.measured.max(part.measured);
        self.ended = self.ended.max(part.ended);
        let loss_s = part.first_loss_ns.map(|ns| ns as f64 / 1e9);
        self.first_loss_s = match (self.first_loss_s, loss_s) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}
