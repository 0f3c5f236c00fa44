//! The main thread's part in one segment.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connections::Connections;
use super::messages::WorkerMessage;
use super::state::{Feed, NEVER, SegmentState};
use crate::engine::event::NOT_SENT;
use crate::engine::{Ended, Event, Load, Plan, Segment, SegmentOutcome, Shared, Slice};
use crate::limits::RECORDERS_MAX;
use crate::recorder::{Recorder, Second};
use crate::schedule::{SECOND_NS, Schedule};

pub(super) const TICK: Duration = Duration::from_millis(100);

/// Starts a segment, merges its seconds, and ends it.
pub(super) struct SegmentCoordinator<'a> {
    pub(super) state: Arc<SegmentState>,
    plan: &'a Plan,
    shared: &'a Shared,
    segment: Segment,
    /// The number of threads of this process.
    workers: u32,
    second: u64,
}

impl<'a> SegmentCoordinator<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        shared: &'a Shared,
        numbers: &[Range<u32>],
        (index, slice): (usize, Option<Slice>),
        at: Instant,
        wall_ms: u64,
    ) -> Self {
        let segment = plan.segments[index].in_slice(slice);
        let here: Vec<u32> = numbers.iter().map(|numbers| numbers.len() as u32).collect();
        let workers = here.iter().sum();
        let window = segment.window();
        let recorders = (workers as usize).clamp(1, RECORDERS_MAX);
        let state = SegmentState {
            at,
            wall_ms,
            window,
            seed: slice.map(|slice| slice.seed),
            feeds: feeds(plan, &segment, &here),
            recorders: (0..recorders)
                .map(|_| Mutex::new(Recorder::new(window, plan.classes.len())))
                .collect(),
            deadline_ns: AtomicU64::new(window.until_ns.saturating_add(nanos(segment.drain))),
            is_cancelled: AtomicBool::new(false),
            first_loss_ns: AtomicU64::new(NEVER),
        };
        Self { state: Arc::new(state), plan, shared, segment, workers, second: 0 }
    }

    /// Waits until all threads have ended the segment. Threads that wait for an answer beyond the drain time are cut
    /// off.
    pub(super) fn run(
        mut self,
        from_workers: &mpsc::Receiver<WorkerMessage>,
        connections: &Connections,
        on_event: &mut impl FnMut(Event),
    ) -> SegmentOutcome {
        let window = self.state.window;
        let (mut done, mut lost) = (0, 0);
        let mut stopped_ns = None;
        let workers = self.workers;
        while done < workers {
            let now_ns = self.state.now_ns();
            if self.shared.is_stopped() && now_ns < window.until_ns && stopped_ns.is_none() {
                stopped_ns = Some(now_ns);
                let deadline = now_ns.saturating_add(nanos(self.segment.drain));
                self.state.deadline_ns.store(deadline, Ordering::Relaxed);
            }
            if now_ns >= self.state.deadline_ns.load(Ordering::Relaxed) {
                self.state.is_cancelled.store(true, Ordering::Relaxed);
                connections.cancel_busy();
            }
            let until_second = ((self.second + 1) * SECOND_NS).saturating_sub(now_ns);
            match from_workers.recv_timeout(TICK.min(Duration::from_nanos(until_second))) {
                Ok(WorkerMessage::Done { lost: is_lost }) => {
                    done += 1;
                    lost += u32::from(is_lost);
                }
                Ok(WorkerMessage::Opened(_)) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            while self.state.now_ns() >= (self.second + 1) * SECOND_NS {
                on_event(Event::Second(Box::new(self.take_second())));
            }
        }
        let ended_ns = stopped_ns.unwrap_or_else(|| self.state.now_ns()).min(window.until_ns);
        self.record_missing(ended_ns);
        on_event(Event::Second(Box::new(self.take_second())));
        let ended = match stopped_ns {
            _ if lost == workers => Ended::AllLost,
            Some(_) => Ended::Stopped,
            None if ended_ns >= window.until_ns => Ended::Planned,
            None => Ended::Finished,
        };
        self.outcome(ended, ended_ns)
    }

    fn take_second(&mut self) -> Second {
        let index = self.second;
        self.second += 1;
        let mut merged = Second::new(index, self.plan.classes.len());
        for recorder in &self.state.recorders {
            let second = recorder.lock().take_second(index);
            merged.merge(&second);
        }
        merged
    }

    /// Records operations that were due until the end and found no free connection.
    fn record_missing(&self, ended_ns: u64) {
        let mut recorder = self.state.recorders[0].lock();
        for feed in &self.state.feeds {
            if let Feed::Open(schedule) = feed {
                let mut schedule = schedule.lock();
                while let Some(planned) = schedule.next_if(|planned| planned.at_ns < ended_ns) {
                    recorder.planned(planned.at_ns);
                    recorder.error(NOT_SENT, 1);
                }
            }
        }
    }

    fn outcome(self, ended: Ended, ended_ns: u64) -> SegmentOutcome {
        let window = self.state.window;
        let mut recorder = Recorder::new(window, self.plan.classes.len());
        self.state.recorders.iter().for_each(|part| recorder.merge(&part.lock()));
        let first_loss_ns = self.state.first_loss_ns.load(Ordering::Relaxed);
        SegmentOutcome {
            recorder,
            started_ms: self.state.wall_ms,
            measured: Duration::from_nanos(ended_ns.saturating_sub(window.from_ns)),
            ended,
            first_loss_s: (first_loss_ns != NEVER).then_some(first_loss_ns as f64 / 1e9),
        }
    }
}

/// The feed of each group. This process has the same share of the rate as of the connections.
fn feeds(plan: &Plan, segment: &Segment, here: &[u32]) -> Vec<Feed> {
    let groups = segment.loads.iter().zip(&plan.groups).zip(here);
    let feed = |((load, of), here): ((&Load, &u32), &u32)| match *load {
        _ if *here == 0 => Feed::Idle,
        Load::Closed { pause, .. } => Feed::Closed { pause },
        // All connections of the group share one schedule: any free connection takes the next operation.
        Load::Open { rate, arrivals, timer_us, seed } => {
            let rate = rate * f64::from(*here) / f64::from(*of);
            let seed = seed.wrapping_add(u64::from(plan.part.0));
            Feed::Open(Mutex::new(Schedule::new(arrivals, 1, rate, seed).on_timer(timer_us).peekable()))
        }
        Load::Idle | Load::Reopen { .. } | Load::Sample { .. } => Feed::Idle,
    };
    groups.map(feed).collect()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
