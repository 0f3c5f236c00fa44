//! Tests of the engine with a client that does as little as possible.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use clients::CancelHandle;

use super::*;
use crate::engine::event::NOT_SENT;
use crate::engine::{Connect, Ended, Segment, SegmentOutcome};
use crate::protocol::{Done, DueTime, Failure};
use crate::schedule::Arrivals;

/// A client whose operations take a given time and fail as configured.
#[derive(Default)]
struct Pretend {
    takes: Duration,
    /// The number of the operation that stalls, and for how long.
    stall: Option<(u64, Duration)>,
    /// Every n-th attempt is to be repeated.
    again_every: Option<u64>,
    /// The number of the operation that loses its connection.
    lost_at: Option<u64>,
    /// The number of reopenings that fail.
    refused_reopens: AtomicU32,
    refuse_open: bool,
    limit: Option<u64>,
    tries: AtomicU64,
}

impl Blocking for Pretend {
    type Session = u32;

    fn open(&self, number: u32) -> std::result::Result<u32, String> {
        if self.refuse_open { Err("wrong password".to_owned()) } else { Ok(number) }
    }

    fn reopen(&self, _: &mut u32) -> std::result::Result<(), String> {
        let left = self.refused_reopens.load(Ordering::Relaxed);
        if left > 0 {
            self.refused_reopens.store(left - 1, Ordering::Relaxed);
            return Err("connection refused".to_owned());
        }
        Ok(())
    }

    fn cancel_handle(&self, _: &u32) -> Option<CancelHandle> {
        None
    }

    fn next(&self, _: &mut u32) -> Option<u16> {
        let limit = self.limit.unwrap_or(u64::MAX);
        (self.tries.load(Ordering::Relaxed) < limit).then_some(0)
    }

    fn run(&self, _: &mut u32, _: u16, _: DueTime) -> std::result::Result<Done, Failure> {
        let number = self.tries.fetch_add(1, Ordering::Relaxed) + 1;
        thread::sleep(self.takes);
        if let Some((_, long)) = self.stall.filter(|(at, _)| *at == number) {
            thread::sleep(long);
        }
        if self.lost_at == Some(number) {
            return Err(Failure::Lost("connection lost".to_owned()));
        }
        if self.again_every.is_some_and(|every| number.is_multiple_of(every)) {
            return Err(Failure::Again("deadlock".to_owned()));
        }
        Ok(Done { hits: 1, misses: 0, bytes_out: 10, bytes_in: 20 })
    }

    fn close(&self, _: &mut u32) {}
}

fn plan(connections: u32, load: Load, duration_ms: u64) -> Plan {
    Plan {
        target: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
        elsewhere: Vec::new(),
        tls: None,
        sources: Vec::new(),
        groups: vec![connections],
        classes: vec!["one".to_owned()],
        threads: 1,
        part: (0, 1),
        open_rate: None,
        connect: Connect::default(),
        tick_us: 0,
        busy_poll_us: 0,
        silence: Duration::from_secs(5),
        segments: vec![Segment {
            name: "run".to_owned(),
            loads: vec![load],
            warmup: Duration::ZERO,
            duration: Duration::from_millis(duration_ms),
            drain: Duration::from_secs(5),
        }],
    }
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Fixed, timer_us: 0, seed: 3 }
}

const CLOSED: Load = Load::Closed { window: 1, pause: Duration::ZERO };

fn run_quietly(driver: &Pretend, plan: &Plan) -> (SegmentOutcome, Vec<u32>) {
    let mut outcome = run(driver, plan, &Shared::default(), |_| ()).unwrap();
    (outcome.segments.remove(0), outcome.sessions)
}

#[test]
fn threads_of_connections_do_not_poll() {
    let plan = Plan { busy_poll_us: 50, ..plan(1, CLOSED, 10) };
    let error = run(&Pretend::default(), &plan, &Shared::default(), |_| ()).unwrap_err().to_string();
    assert!(error.contains("busy_poll_us: this driver has a thread for each connection"), "{error}");
}

#[test]
fn every_planned_operation_is_carried_out_once() {
    let driver = Pretend { takes: Duration::from_micros(100), ..Pretend::default() };
    let (segment, sessions) = run_quietly(&driver, &plan(8, open(500.0), 1_200));
    let counts = segment.recorder.total().counts;
    assert_eq!((counts.planned, counts.sent, counts.completed), (600, 600, 600), "{counts:?}");
    assert_eq!((counts.hits, counts.bytes_out, counts.bytes_in), (600, 6_000, 12_000));
    assert_eq!((segment.ended, counts.errors_total()), (Ended::Planned, 0));
    assert_eq!(sessions, (0..8).collect::<Vec<_>>());
}

/// All connections stall. Operations that come due meanwhile are late by their wait, which is not generator lag.
#[test]
fn waiting_for_a_free_connection_is_response_time_and_not_lag() {
    let driver = Pretend { stall: Some((100, Duration::from_millis(300))), ..Pretend::default() };
    let (segment, _) = run_quietly(&driver, &plan(1, open(500.0), 1_000));
    let total = segment.recorder.total();
    assert_eq!(total.counts.completed, 500);
    // 75 operations are due in the first 150 ms of the stall. A pause of the machine adds a few, in all three clocks.
    let [response, service, lag] = [&total.clocks.response, &total.clocks.service, &total.clocks.lag]
        .map(|clock| clock.count_above_us(150_000));
    assert!(response >= 60, "{response} of about 75 that waited for 150 ms and more");
    assert!((1..response / 4).contains(&service) && lag < response / 4, "{response} {service} {lag}");
}

#[test]
fn closed_loop_sends_as_soon_as_an_answer_is_there_and_ends_when_there_is_no_more() {
    let driver = Pretend { limit: Some(200), takes: Duration::from_micros(50), ..Pretend::default() };
    let (segment, _) = run_quietly(&driver, &plan(1, CLOSED, 60_000));
    let counts = segment.recorder.total().counts;
    assert_eq!((counts.planned, counts.completed, segment.ended), (200, 200, Ended::Finished));
}

#[test]
fn tries_are_repeated_and_each_is_counted() {
    let driver = Pretend { limit: Some(100), again_every: Some(10), ..Pretend::default() };
    let (segment, _) = run_quietly(&driver, &plan(1, CLOSED, 60_000));
    let counts = segment.recorder.total().counts;
    assert_eq!(counts.errors.get("tried again: deadlock"), Some(&10), "{counts:?}");
    assert_eq!(counts.completed + 10, driver.tries.load(Ordering::Relaxed));
}

#[test]
fn lost_connections_are_opened_again_and_the_second_of_the_loss_is_kept() {
    let driver = Pretend {
        limit: Some(50),
        lost_at: Some(20),
        refused_reopens: AtomicU32::new(2),
        ..Pretend::default()
    };
    let (segment, _) = run_quietly(&driver, &plan(1, CLOSED, 60_000));
    let counts = segment.recorder.total().counts;
    assert_eq!((counts.completed, counts.failed), (49, 1), "{counts:?}");
    assert_eq!(counts.errors.get("not opened again: connection refused"), Some(&2));
    assert!(segment.first_loss_s.unwrap() < 10.0);
}

#[test]
fn a_server_that_does_not_come_back_ends_the_run() {
    let driver =
        Pretend { lost_at: Some(5), refused_reopens: AtomicU32::new(u32::MAX), ..Pretend::default() };
    let mut plan = plan(1, CLOSED, 60_000);
    plan.silence = Duration::from_millis(200);
    let (segment, _) = run_quietly(&driver, &plan);
    assert_eq!((segment.ended, segment.recorder.total().counts.completed), (Ended::AllLost, 4));
}

#[test]
fn a_refusal_stops_the_run_with_its_reason() {
    let driver = Pretend { refuse_open: true, ..Pretend::default() };
    let error = run(&driver, &plan(3, CLOSED, 100), &Shared::default(), |_| ()).unwrap_err().to_string();
    assert!(error.contains("0 of 3 connections") && error.contains("3 x wrong password"), "{error}");
}

#[test]
fn a_stop_ends_the_run_early() {
    let driver = Pretend { takes: Duration::from_millis(1), ..Pretend::default() };
    let shared = Shared::default();
    let plan = plan(2, open(100.0), 60_000);
    let outcome = run(&driver, &plan, &shared, |event| {
        if matches!(event, Event::Second(_)) {
            shared.stop();
        }
    })
    .unwrap();
    let segment = &outcome.segments[0];
    let counts = segment.recorder.total().counts;
    assert_eq!(segment.ended, Ended::Stopped);
    // A pause of the machine just before the end leaves some that were due and not sent.
    let not_sent = counts.errors.get(NOT_SENT).copied().unwrap_or(0);
    assert_eq!(
        (counts.planned, counts.errors_total()),
        (counts.completed + not_sent, not_sent),
        "{counts:?}"
    );
    assert!(counts.completed > 0, "{counts:?}");
    assert!(segment.measured < Duration::from_secs(50));
}

#[test]
fn a_pause_keeps_a_connection_quiet_after_an_answer() {
    let driver = Pretend::default();
    let (segment, _) =
        run_quietly(&driver, &plan(1, Load::Closed { window: 1, pause: Duration::from_millis(100) }, 1_050));
    let counts = segment.recorder.total().counts;
    assert!((2..=11).contains(&counts.completed), "{counts:?}");
}

#[test]
fn connections_that_pause_do_not_begin_together() {
    let driver = Pretend::default();
    let pause = Duration::from_secs(600);
    let (segment, _) = run_quietly(&driver, &plan(8, Load::Closed { window: 1, pause }, 300));
    assert_eq!(segment.recorder.total().counts.completed, 1, "the others would begin minutes later");
}

#[test]
fn processes_share_connections_and_rate() {
    let (mut completed, mut sessions) = (0, Vec::new());
    for part in 0..3 {
        let mut plan = plan(7, open(400.0), 500);
        plan.part = (part, 3);
        let driver = Pretend::default();
        let (segment, some) = run_quietly(&driver, &plan);
        completed += segment.recorder.total().counts.completed;
        sessions.extend(some);
    }
    assert_eq!(sessions, (0..7).collect::<Vec<_>>());
    assert!((198..=202).contains(&completed), "{completed}");
}

#[test]
fn what_this_engine_cannot_do_is_refused() {
    let refused =
        |plan: &Plan| run(&Pretend::default(), plan, &Shared::default(), |_| ()).unwrap_err().to_string();
    assert!(
        refused(&plan(1, Load::Closed { window: 2, pause: Duration::ZERO }, 1))
            .contains("one operation at a time")
    );
    assert!(refused(&plan(1_000_000, CLOSED, 1)).contains("--workers"));
}
