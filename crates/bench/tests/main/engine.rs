//! Tests of the event engine with a protocol of one letter per message, against servers with configurable answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use load::engine::{AfterReopen, Close, Ended, Load, Outcome, Plan, ReopenTrigger, Segment, Shared, event};
use load::protocol::{Answer, AnswerStatus, Completion, DueTime, Opening, Protocol, Received, Started};
use load::schedule::Arrivals;

use crate::plans;

/// Sends letters and takes every letter as an answer.
pub(crate) struct Letters {
    pub(crate) window: usize,
    /// The number of messages per session.
    pub(crate) messages: u64,
    /// Whether the server speaks first.
    pub(crate) greeted: bool,
    /// Whether answers may wait.
    pub(crate) patient: bool,
}

impl Protocol for Letters {
    type Session = u64;

    fn session(&self, _number: u32) -> u64 {
        0
    }

    fn open(&self, _session: &mut u64, out: &mut Vec<u8>) -> Opening {
        if self.greeted {
            out.push(b'h');
            return Opening::Wait;
        }
        Opening::Ready
    }

    fn window(&self, _session: &u64) -> usize {
        self.window
    }

    fn answers_can_wait(&self) -> bool {
        self.patient
    }

    fn start(&self, session: &mut u64, _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        if *session == self.messages {
            return None;
        }
        *session += 1;
        out.push(b'm');
        Some(Started { class: 0, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        _session: &mut u64,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        for byte in bytes.iter().filter(|byte| **byte == b'm') {
            done(Completion {
                answer: Answer::InOrder,
                status: AnswerStatus::Good,
                bytes: u32::from(*byte == b'm'),
            });
        }
        Ok(Received { used: bytes.len(), ready: bytes.contains(&b'h'), over: false })
    }
}

/// A server that returns every letter after `pause`, at most `answers` of them per connection.
pub(crate) fn echo(pause: Duration, answers: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut letter = [0];
                let mut left = answers;
                while matches!(stream.read(&mut letter), Ok(1)) {
                    thread::sleep(pause);
                    if left > 0 && stream.write_all(&letter).is_err() {
                        return;
                    }
                    left = left.saturating_sub(1);
                }
            });
        }
    });
    address
}

fn segment(load: Load, duration_ms: u64) -> Segment {
    plans::segment(load, Duration::from_millis(duration_ms))
}

fn run(letters: &Letters, target: SocketAddr, connections: u32, segments: Vec<Segment>) -> Outcome<u64> {
    let plan = Plan {
        silence: Duration::from_millis(500),
        segments,
        ..plans::plan(target, connections, Load::Idle, Duration::ZERO)
    };
    event::run(letters, &plan, &Shared::default(), |_| ()).unwrap()
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Fixed, timer_us: 0, seed: 1 }
}

const CLOSED: Load = Load::Closed { window: 1, pause: Duration::ZERO };

/// Another test, with a simulated clock, checks that the wait is neither in the lag nor in the service time.
#[test]
fn what_waits_for_the_window_is_sent_at_last_and_its_wait_is_in_the_response_time() {
    for patient in [false, true] {
        let letters = Letters { window: 1, messages: u64::MAX, greeted: false, patient };
        // At most 50 per second are answered, and 100 are due in one second: the last waits for a second.
        let outcome =
            run(&letters, echo(Duration::from_millis(20), usize::MAX), 1, vec![segment(open(100.0), 1_000)]);
        let total = outcome.segments[0].recorder.total();
        assert_eq!((total.counts.planned, total.counts.completed), (100, 100), "{:?}", total.counts);
        assert!(total.clocks.response.quantile_us(1.0) > 500_000, "however quick the machine is");
    }
}

#[test]
fn a_server_that_falls_silent_ends_the_segment() {
    let letters = Letters { window: usize::MAX, messages: u64::MAX, greeted: false, patient: false };
    let outcome = run(&letters, echo(Duration::ZERO, 10), 2, vec![segment(CLOSED, 60_000)]);
    let segment = &outcome.segments[0];
    assert_eq!(segment.ended, Ended::Silent);
    assert!(segment.measured < Duration::from_secs(20), "{:?}", segment.measured);
    assert_eq!(segment.recorder.total().counts.completed, 20);
}

#[test]
fn a_segment_ends_when_every_session_has_sent_what_it_was_to_send() {
    let letters = Letters { window: usize::MAX, messages: 50, greeted: false, patient: false };
    let address = echo(Duration::ZERO, usize::MAX);
    let outcome = run(&letters, address, 3, vec![segment(CLOSED, 60_000)]);
    let total = outcome.segments[0].recorder.total();
    assert_eq!(outcome.segments[0].ended, Ended::Finished);
    assert_eq!((total.counts.planned, total.counts.completed, total.counts.errors_total()), (150, 150, 0));
    assert_eq!(outcome.sessions, [50; 3]);
}

#[test]
fn segments_follow_each_other_on_the_same_connections() {
    let letters = Letters { window: usize::MAX, messages: u64::MAX, greeted: true, patient: false };
    let segments = vec![segment(open(200.0), 300), segment(CLOSED, 300), segment(open(100.0), 300)];
    let outcome = run(&letters, echo(Duration::ZERO, usize::MAX), 4, segments);
    let counts: Vec<u64> = outcome.segments.iter().map(|s| s.recorder.total().counts.planned).collect();
    assert_eq!((counts[0], counts[2]), (60, 30));
    let completed: u64 = outcome.segments.iter().map(|s| s.recorder.total().counts.completed).sum();
    assert_eq!(outcome.sessions.iter().sum::<u64>(), completed);
    assert_eq!(outcome.handshakes.len(), 4, "connected once");
}

#[test]
fn connections_are_opened_again_on_a_schedule_or_all_at_once() {
    let letters = Letters { window: usize::MAX, messages: u64::MAX, greeted: true, patient: false };
    let reopen = |when, close| Load::Reopen { when, close, class: 0, then: AfterReopen::Keep };
    let scheduled = ReopenTrigger::Scheduled { rate: 50.0, arrivals: Arrivals::Fixed, seed: 1 };
    let segments = vec![
        segment(reopen(scheduled, Close::Fin), 500),
        segment(reopen(ReopenTrigger::Once, Close::Reset), 500),
        segment(open(100.0), 300),
    ];
    let outcome = run(&letters, echo(Duration::ZERO, usize::MAX), 8, segments);
    let completed: Vec<u64> = outcome.segments.iter().map(|s| s.recorder.total().counts.completed).collect();
    assert_eq!(completed, [25, 8, 30], "25 in turn, 8 at once, and then all of them work");
    assert!(outcome.segments.iter().all(|s| s.recorder.total().counts.errors_total() == 0));
}
