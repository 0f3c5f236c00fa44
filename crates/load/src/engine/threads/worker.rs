//! One thread: it opens its connection and carries out one operation after the other.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use super::connections::Connections;
use super::messages::WorkerMessage;
use super::open_limiter::OpenLimiter;
use super::state::{Feed, SegmentState};
use crate::engine::{Plan, Shared};
use crate::limits::LOOP_SLEEP_MAX_MS;
use crate::protocol::{Blocking, DueTime, Failure};
use crate::recorder::Operation;

/// The largest delay of a wake-up that this thread allows the kernel.
const TIMER_SLACK_NS: u64 = 1_000;
const NOT_ANSWERED: &str = "sent, but not answered before the drain time was over";
/// The first wait before the thread opens a lost connection again. It doubles up to a second.
const REOPEN_WAIT: Duration = Duration::from_millis(20);
const REOPEN_WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) struct Worker<'a, B: Blocking> {
    pub(super) driver: &'a B,
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) number: u32,
    pub(super) group: usize,
    /// The position of the connection within its group in this process, from 0 to 1.
    pub(super) position: f64,
    pub(super) connections: &'a Connections,
    pub(super) open_limiter: &'a OpenLimiter,
    pub(super) to_main: mpsc::Sender<WorkerMessage>,
}

/// How the thread continues after an operation.
enum NextStep {
    /// With the next operation.
    Next,
    /// It has no more operations.
    Done,
    /// Its connection is lost for good.
    Lost,
}

impl<B: Blocking> Worker<'_, B> {
    /// Opens the connection and runs the segments that the main thread starts. Returns the session if the connection
    /// was opened.
    pub(super) fn run(self, on_start: &mpsc::Receiver<Arc<SegmentState>>) -> Option<B::Session> {
        // The kernel's default slack of 50 us would appear as lag. If the call fails, the run is less precise but not
        // wrong.
        let _ = set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
        let opened = self.open_limiter.run(|| {
            let began = Instant::now();
            if self.shared.is_stopped() {
                return Err("stopped".to_owned());
            }
            self.driver.open(self.number).map(|session| (session, began.elapsed()))
        });
        let (mut session, took) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                let _ = self.to_main.send(WorkerMessage::Opened(Err(why)));
                return None;
            }
        };
        self.connections.set_cancel_handle(self.number, self.driver.cancel_handle(&session));
        self.shared.add_opened();
        let _ = self.to_main.send(WorkerMessage::Opened(Ok(took)));
        let mut lost = false;
        while let Ok(state) = on_start.recv() {
            lost = lost || self.segment(&state, &mut session);
            if self.to_main.send(WorkerMessage::Done { lost }).is_err() {
                break;
            }
        }
        if !lost {
            self.driver.close(&mut session);
        }
        Some(session)
    }

    /// Runs the part of this thread in a segment. Returns whether the connection is lost.
    fn segment(&self, state: &SegmentState, session: &mut B::Session) -> bool {
        let begun_ns = state.now_ns();
        let mut free_ns = 0;
        let lost = self.operations(state, session, &mut free_ns);
        let is_busy = |feed: &Feed| match feed {
            Feed::Closed { pause } => pause.is_zero(),
            Feed::Idle => true,
            Feed::Open(_) => false,
        };
        if free_ns > 0 && state.feeds.iter().all(is_busy) {
            state.recorder(self.number).lock().was_busy(begun_ns, free_ns);
        }
        lost
    }

    /// Carries out the operations of a segment. `free_ns` is the time at which the latest operation ended.
    fn operations(&self, state: &SegmentState, session: &mut B::Session, free_ns: &mut u64) -> bool {
        if let Some(seed) = state.seed {
            self.driver.reseed(session, seed);
        }
        loop {
            let after = match &state.feeds[self.group] {
                Feed::Idle => {
                    self.wait_until(state, state.window.until_ns);
                    return false;
                }
                Feed::Closed { pause } => {
                    if !pause.is_zero() {
                        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
                        let resumes_ns = match *free_ns {
                            // Connections with a pause start spread over one pause, as if the load had been running
                            // before.
                            0 => (pause_ns as f64 * self.position) as u64,
                            free_ns => free_ns.saturating_add(pause_ns),
                        };
                        self.wait_until(state, resumes_ns.min(state.window.until_ns));
                    }
                    let now_ns = state.now_ns();
                    if now_ns >= state.window.until_ns || self.shared.is_stopped() {
                        return false;
                    }
                    state.recorder(self.number).lock().planned(now_ns);
                    self.operation(state, session, now_ns, now_ns)
                }
                Feed::Open(schedule) => {
                    if state.is_cancelled.load(Ordering::Relaxed) {
                        return false;
                    }
                    let until_ns = state.window.until_ns;
                    let planned = schedule.lock().next_if(|planned| planned.at_ns < until_ns);
                    let Some(planned) = planned else {
                        self.wait_until(state, until_ns);
                        return false;
                    };
                    if !self.wait_until(state, planned.at_ns) {
                        return false;
                    }
                    state.recorder(self.number).lock().planned(planned.at_ns);
                    self.operation(state, session, planned.at_ns, (*free_ns).max(planned.at_ns))
                }
            };
            match after {
                NextStep::Next => *free_ns = state.now_ns(),
                NextStep::Done => return false,
                NextStep::Lost => return true,
            }
        }
    }

    /// Sleeps until an operation is due. Returns false if the run is stopped before.
    fn wait_until(&self, state: &SegmentState, at_ns: u64) -> bool {
        loop {
            if self.shared.is_stopped() {
                return false;
            }
            let now_ns = state.now_ns();
            if now_ns >= at_ns {
                return true;
            }
            thread::sleep(Duration::from_nanos((at_ns - now_ns).min(LOOP_SLEEP_MAX_MS * 1_000_000)));
        }
    }

    /// Carries out one operation, repeats it if the server asks for that, and records it.
    fn operation(
        &self,
        state: &SegmentState,
        session: &mut B::Session,
        intended_ns: u64,
        able_ns: u64,
    ) -> NextStep {
        let Some(class) = self.driver.next(session) else {
            state.recorder(self.number).lock().withdrawn(intended_ns);
            return NextStep::Done;
        };
        let sent_ns = state.now_ns();
        let operation = Operation { class, intended_ns, sent_ns };
        let due = DueTime { intended_ns, wall_ms: state.wall_ms + intended_ns / 1_000_000, sent_ns };
        self.connections.set_busy(self.number, true);
        let outcome = loop {
            match self.driver.run(session, class, due) {
                Err(Failure::Again(why)) => {
                    state.recorder(self.number).lock().error(&format!("tried again: {why}"), 1);
                    if self.shared.is_stopped() || state.is_cancelled.load(Ordering::Relaxed) {
                        break Err(Failure::Refused(why));
                    }
                }
                outcome => break outcome,
            }
        };
        let now_ns = state.now_ns();
        self.connections.set_busy(self.number, false);
        let checked = |done| self.driver.check(session).map(|()| done).map_err(Failure::Refused);
        let outcome = outcome.and_then(checked);
        let mut recorder = state.recorder(self.number).lock();
        match outcome {
            Ok(done) => {
                recorder.sent_when_able(&operation, able_ns, done.bytes_out);
                recorder.completed(&operation, now_ns, done.bytes_in);
                if done.hits > 0 || done.misses > 0 {
                    recorder.found(&operation, done.hits, done.misses);
                }
                drop(recorder);
                self.shared.add_completed(1);
                NextStep::Next
            }
            Err(Failure::Refused(why) | Failure::Again(why)) => {
                recorder.sent_when_able(&operation, able_ns, 0);
                recorder.failed(class, &why);
                NextStep::Next
            }
            Err(Failure::Lost(why)) => {
                recorder.sent_when_able(&operation, able_ns, 0);
                let was_cancelled = state.is_cancelled.load(Ordering::Relaxed);
                recorder.failed(class, if was_cancelled { NOT_ANSWERED } else { &why });
                drop(recorder);
                if !was_cancelled {
                    state.lost(now_ns);
                }
                self.reopen(state, session, was_cancelled)
            }
        }
    }

    /// Opens a lost connection again. It tries until the end of the run, or for `silence` of the plan.
    fn reopen(&self, state: &SegmentState, session: &mut B::Session, was_cancelled: bool) -> NextStep {
        let began = Instant::now();
        let mut wait = REOPEN_WAIT;
        loop {
            let reopened = self.open_limiter.run(|| self.driver.reopen(session));
            match reopened {
                Ok(()) => {
                    self.connections.set_cancel_handle(self.number, self.driver.cancel_handle(session));
                    return if was_cancelled { NextStep::Done } else { NextStep::Next };
                }
                Err(why) => {
                    state.recorder(self.number).lock().error(&format!("not opened again: {why}"), 1);
                }
            }
            let over = self.shared.is_stopped() || state.now_ns() >= state.window.until_ns;
            if over || began.elapsed() + wait > self.plan.silence {
                return NextStep::Lost;
            }
            thread::sleep(wait);
            wait = (wait * 2).min(REOPEN_WAIT_MAX);
        }
    }
}
