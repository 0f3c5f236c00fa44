//! Tests of the event engine's counts and latencies with publishing devices.

use std::time::Duration;

use load::engine::{Load, Plan, Shared, event};
use load::payload::Template;
use load::recorder::Class;
use load::schedule::{Arrivals, Schedule};
use targets::mqtt::{Config, Messages, Mqtt, Tally, Version};
use wire::mqtt::QoS;

use crate::acker::{Acker, Behaviour};
use crate::plans;

fn plan(acker: &Acker, connections: u32, load: Load) -> Plan {
    let plan = plans::plan(acker.address, connections, load, Duration::from_secs(1));
    Plan { silence: Duration::from_secs(30), ..plan }
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Fixed, timer_us: 0, seed: 1 }
}

/// The outcome of a run of one segment.
#[derive(Debug)]
struct Outcome {
    recorder: Class,
    tallies: Vec<Tally>,
    started_ms: u64,
}

fn run_quietly(plan: &Plan) -> bench::Result<Outcome> {
    run_kept_alive(plan, 60)
}

fn run_kept_alive(plan: &Plan, keep_alive_s: u16) -> bench::Result<Outcome> {
    let mqtt = Mqtt::new(Config {
        version: Version::V311,
        groups: vec![Messages {
            devices: plan.connections(),
            qos: QoS::AtLeastOnce,
            class: 0,
            payload: Template::new(100),
            gateway: None,
        }],
        token_prefix: "tok".to_owned(),
        keep_alive_s,
        floor_ts_ms: 0,
    });
    let outcome = event::run(&mqtt, plan, &Shared::default(), |_| ())?;
    Ok(Outcome {
        recorder: outcome.segments[0].recorder.total(),
        tallies: outcome.sessions.iter().map(|session| session.tally).collect(),
        started_ms: outcome.segments[0].started_ms,
    })
}

#[test]
fn every_planned_message_is_sent_acknowledged_and_counted_per_device() {
    let acker = Acker::start(Behaviour::default());
    let mut plan = plan(&acker, 10, open(2_000.0));
    plan.threads = 2;
    plan.tick_us = 500;
    let outcome = run_quietly(&plan).unwrap();
    let counts = &outcome.recorder.counts;
    assert_eq!(counts.planned, 2_000);
    assert_eq!((counts.sent, counts.completed, counts.errors_total()), (2_000, 2_000, 0), "{counts:?}");
    assert_eq!((acker.messages(), acker.payload_bytes()), (2_000, 200_000));
    assert_eq!(outcome.recorder.clocks.response.len(), 2_000);
    assert_eq!(outcome.tallies.len(), 10);
    assert!(outcome.tallies.iter().all(|t| t.sent == 200 && t.acked == 200), "{:?}", outcome.tallies);
    assert!(outcome.tallies.iter().all(|t| t.last_ts_ms >= outcome.started_ms + 199));
}

/// One connection, 1,000 messages per second, and a server that stalls once for 200 ms. A tool that counts from the
/// actual send time with one message in flight sees one slow answer; about 200 messages were due meanwhile.
#[test]
fn messages_that_wait_behind_a_stall_are_counted_from_their_intended_time() {
    let stall = Some((300, Duration::from_millis(200)));
    let acker = Acker::start(Behaviour { stall, ..Behaviour::default() });
    let outcome = run_quietly(&plan(&acker, 1, open(1_000.0))).unwrap();
    let recorder = &outcome.recorder;
    assert_eq!((recorder.counts.completed, recorder.counts.errors_total()), (1_000, 0));
    // Those due in the first half of the stall waited for 100 ms and more.
    let slow = recorder.clocks.response.count_above_us(100_000);
    assert!(slow >= 90, "{slow} samples above 100 ms");
    assert!(recorder.clocks.response.count_above_us(195_000) >= 1);
}

/// The worker polls ten times per second, and sends then. Without the kernel's timestamps every answer would have taken
/// until the next poll, in every run. A machine with other work answers late now and then.
#[test]
fn an_answer_that_is_read_later_counts_from_when_it_came() {
    let acker = Acker::start(Behaviour::default());
    let mut plan = plan(&acker, 20, open(200.0));
    plan.tick_us = 100_000;
    let median_us = || {
        let recorder = run_quietly(&plan).unwrap().recorder;
        assert_eq!((recorder.counts.completed, recorder.counts.errors_total()), (200, 0));
        recorder.clocks.service.quantile_us(0.5)
    };
    let medians_us: Vec<_> = std::iter::repeat_with(median_us).take(5).collect();
    assert!(medians_us.iter().any(|median_us| *median_us < 50_000), "{medians_us:?} us");
}

#[test]
fn answers_that_wait_in_the_kernel_are_all_read() {
    let acker = Acker::start(Behaviour::default());
    let outcome = run_quietly(&plan(&acker, 200, open(4_000.0))).unwrap();
    let counts = &outcome.recorder.counts;
    assert_eq!((counts.planned, counts.completed, counts.errors_total()), (4_000, 4_000, 0), "{counts:?}");
    assert!(outcome.tallies.iter().all(|t| t.sent == 20 && t.acked == 20), "{:?}", outcome.tallies);
}

#[test]
fn what_comes_due_at_ticks_is_sent_answered_and_counted_once() {
    let acker = Acker::start(Behaviour::default());
    let load = Load::Open { rate: 2_000.0, arrivals: Arrivals::Fixed, timer_us: 1_000, seed: 1 };
    let outcome = run_quietly(&plan(&acker, 200, load)).unwrap();
    let counts = &outcome.recorder.counts;
    let due = Schedule::new(Arrivals::Fixed, 200, 2_000.0, 1).on_timer(1_000);
    let due = due.take_while(|planned| planned.at_ns < 1_000_000_000).count() as u64;
    assert_eq!((counts.planned, counts.sent, counts.completed), (due, due, due), "{counts:?}");
    assert_eq!((counts.errors_total(), acker.messages()), (0, due));
    assert!(outcome.tallies.iter().all(|t| t.sent == t.acked), "{:?}", outcome.tallies);
}

#[test]
fn closed_load_keeps_the_window_full_and_loses_nothing() {
    let acker = Acker::start(Behaviour::default());
    let outcome = run_quietly(&plan(&acker, 4, Load::Closed { window: 16, pause: Duration::ZERO })).unwrap();
    let counts = &outcome.recorder.counts;
    assert!(counts.completed > 4 * 16, "{counts:?}");
    assert_eq!((counts.sent, counts.errors_total()), (counts.completed, 0));
    assert_eq!(acker.messages(), counts.completed);
}

#[test]
fn a_refusal_names_its_code_and_stops_the_run() {
    let acker = Acker::start(Behaviour { connack: 5, ..Behaviour::default() });
    let error = run_quietly(&plan(&acker, 3, open(10.0))).unwrap_err().to_string();
    assert!(
        error.contains("0 of 3 connections") && error.contains("3 x CONNACK 5 (not authorized)"),
        "{error}"
    );
}

#[test]
fn nobody_listening_is_said_so() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let acker = Acker::start(Behaviour::default());
    let mut plan = plan(&acker, 2, open(10.0));
    plan.target = unused;
    let error = run_quietly(&plan).unwrap_err().to_string();
    assert!(error.contains("connection refused"), "{error}");
}

#[test]
fn lost_connections_are_errors_and_so_are_their_messages() {
    let acker = Acker::start(Behaviour { hang_up_after: Some(50), ..Behaviour::default() });
    let outcome = run_quietly(&plan(&acker, 2, open(400.0))).unwrap();
    let counts = &outcome.recorder.counts;
    assert!(counts.planned < 400, "nothing is planned any more when no connection is left: {counts:?}");
    assert_eq!(counts.completed, 98, "49 answered on each of two connections");
    let lost: u64 =
        counts.errors.iter().filter(|(what, _)| what.starts_with("connection lost")).map(|(_, n)| n).sum();
    assert_eq!(lost, 2, "{counts:?}");
    assert_eq!(
        counts.errors_total() - lost,
        counts.planned - 98,
        "every message that was not acknowledged is an error"
    );
}

#[test]
fn messages_never_answered_are_errors_after_the_drain() {
    let acker = Acker::start(Behaviour { silent: true, ..Behaviour::default() });
    let mut plan = plan(&acker, 1, open(100.0));
    plan.segments[0].duration = Duration::from_millis(200);
    plan.segments[0].drain = Duration::from_millis(100);
    let counts = run_quietly(&plan).unwrap().recorder.counts;
    assert_eq!((counts.sent, counts.completed, counts.errors_total()), (20, 0, 20), "{counts:?}");
}

#[test]
fn idle_connections_send_only_pings() {
    let acker = Acker::start(Behaviour::default());
    let mut plan = plan(&acker, 5, Load::Idle);
    plan.segments[0].duration = Duration::from_millis(2_500);
    let counts = run_kept_alive(&plan, 1).unwrap().recorder.counts;
    assert_eq!((counts.planned, counts.errors_total(), acker.messages()), (0, 0, 0));
}
