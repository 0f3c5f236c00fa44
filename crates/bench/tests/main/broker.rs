//! Scenarios of driver `broker`: against mosquitto, and against a broker that treats one message badly.

use bench::Context;
use bench::runner::{self, Options};
use load::result::{Bundle, Phase};
use load::scenario::Scenario;

use crate::faulty_broker::{self, Fault};
use crate::mosquitto::Broker;

/// Runs a built-in scenario without limits for the generator's lag, because the machine may be busy.
fn run(target: &str, name: &str, sets: &[&str]) -> Bundle {
    run_phases(Vec::new(), target, name, sets)
}

/// The same with some of its phases.
fn run_phases(phases: Vec<String>, target: &str, name: &str, sets: &[&str]) -> Bundle {
    let mut all = vec![format!("target.url=mqtt://{target}")];
    all.extend(
        ["gates.lag_p99_us_max=1e9", "gates.steal_share_max=1", "gates.generator_core_max=10"]
            .map(str::to_owned),
    );
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    let scenario = Scenario::load(name, &all).unwrap();
    let options = Options { quiet: true, phases, ..Options::default() };
    runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap()
}

/// The same with a broker of Debian.
fn run_on_mosquitto(name: &str, sets: &[&str]) -> Bundle {
    let broker = Broker::start();
    let bundle = run(&format!("127.0.0.1:{}", broker.port), name, sets);
    assert!(bundle.result.validity().is_quotable(), "{sets:?}: {bundle}");
    bundle
}

/// Some pairs for a moment.
const FEW_PAIRS: [&str; 5] = [
    "phase.run.mix.publishers.connections=10",
    "phase.run.mix.subscribers.connections=10",
    "phase.run.rate=300",
    "phase.run.warmup=0s",
    "phase.run.duration=1s",
];

fn completed(phase: &Phase, operation: &str) -> u64 {
    phase.operations.iter().find(|known| known.name == operation).map_or(0, |known| known.counts.completed)
}

#[test]
fn every_message_of_a_pair_is_measured_to_its_subscriber() {
    for (qos, version, threads) in [(0, "3.1.1", 1), (1, "5", 2), (2, "5", 1), (2, "3.1.1", 3)] {
        let options = [
            format!("dataset.qos={qos}"),
            format!("dataset.version='{version}'"),
            format!("phase.run.threads={threads}"),
        ];
        let sets: Vec<&str> = FEW_PAIRS.into_iter().chain(options.iter().map(String::as_str)).collect();
        let bundle = run_on_mosquitto("broker-pairs", &sets);
        let phase = bundle.main_phase().unwrap();
        let (sent, delivered) = (completed(phase, "publish"), completed(phase, "deliver"));
        assert!(sent > 200 && sent == delivered, "qos {qos}: {bundle}");
        assert_eq!(bundle.result.verification.len(), if qos == 1 { 3 } else { 4 }, "{bundle}");
        assert!(bundle.to_string().contains("deliver response"), "{bundle}");
    }
}

#[test]
fn every_subscriber_of_a_topic_gets_every_message() {
    let sets = [
        "dataset.topics=2",
        "phase.run.mix.publishers.connections=4",
        "phase.run.mix.subscribers.connections=15",
        "phase.run.rate=100",
        "phase.run.warmup=0s",
        "phase.run.duration=1s",
    ];
    let bundle = run_on_mosquitto("broker-fanout", &sets);
    let phase = bundle.main_phase().unwrap();
    let (sent, delivered) = (completed(phase, "publish"), completed(phase, "deliver"));
    // Eight subscribers have the first topic, seven the second.
    assert!((7 * sent..=8 * sent).contains(&delivered) && delivered > 7 * sent, "{bundle}");
}

#[test]
fn a_closed_loop_ends_with_the_last_delivery() {
    let pairs = [
        "phase.run.mix.publishers.connections=10",
        "phase.run.mix.subscribers.connections=10",
        "phase.run.mix.publishers.messages=50",
    ];
    let fanout = ["phase.run.mix.subscribers.connections=20", "phase.run.mix.publishers.messages=50"];
    for (name, sets, threads, sent, delivered) in [
        ("broker-pairs-closed", &pairs[..], 1, 500, 500),
        ("broker-pairs-closed", &pairs[..], 2, 500, 500),
        ("broker-fanout-closed", &fanout[..], 1, 50, 1_000),
    ] {
        let threads = format!("phase.run.threads={threads}");
        let sets: Vec<&str> = sets.iter().copied().chain([threads.as_str()]).collect();
        let bundle = run_on_mosquitto(name, &sets);
        let phase = bundle.main_phase().unwrap();
        assert_eq!((completed(phase, "publish"), completed(phase, "deliver")), (sent, delivered), "{bundle}");
        let rate = phase.operations.iter().find(|known| known.name == "deliver").unwrap().completed_per_s;
        assert!((rate * phase.duration_s - delivered as f64).abs() < 1.0, "{bundle}");
    }
}

#[test]
fn deliveries_after_the_last_acknowledgement_belong_to_the_time_of_a_closed_loop() {
    let address = faulty_broker::start(Fault::Delay).to_string();
    // The delayed message is the last one.
    let messages = format!("phase.run.mix.publishers.messages={}", faulty_broker::BAD);
    let sets = [
        "phase.run.mix.publishers.connections=1",
        "phase.run.mix.subscribers.connections=1",
        messages.as_str(),
    ];
    let bundle = run(&address, "broker-pairs-closed", &sets);
    let phase = bundle.main_phase().unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    assert_eq!(completed(phase, "deliver"), faulty_broker::BAD, "{bundle}");
    assert!(phase.duration_s >= faulty_broker::DELAY.as_secs_f64(), "{bundle}");
}

#[test]
fn sessions_that_were_away_get_what_was_queued() {
    let mut sets: Vec<String> =
        ["leave", "queue", "return"].map(|phase| format!("phase.{phase}.connections=10")).to_vec();
    sets.push("phase.queue.messages=30".to_owned());
    for version in ["3.1.1", "5"] {
        sets.push(format!("dataset.version='{version}'"));
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let bundle = run_on_mosquitto("broker-offline", &sets);
        let [_, queue, back] = &bundle.result.phases[..] else { panic!("{bundle}") };
        assert_eq!(completed(queue, "publish"), 300, "{bundle}");
        assert_eq!((completed(back, "connect"), completed(back, "deliver")), (10, 300), "{bundle}");
    }
}

#[test]
fn sessions_that_the_broker_forgot_are_failures() {
    let broker = Broker::start();
    let sets = [
        "phase.queue.connections=10",
        "phase.queue.messages=3",
        "phase.return.connections=10",
        "phase.return.duration=1s",
        "phase.return.drain=1s",
    ];
    // Without the phase in which they subscribe there are none.
    let phases = ["queue", "return"].map(str::to_owned).to_vec();
    let bundle = run_phases(phases, &format!("127.0.0.1:{}", broker.port), "broker-offline", &sets);
    let text = bundle.to_string();
    assert!(text.starts_with("INVALID") && text.contains("no session of this client any more"), "{text}");
    assert!(text.contains("WRONG messages lost (return): 0 expected, 30 found"), "{text}");
}

#[test]
fn connections_are_counted_with_and_without_subscriptions() {
    let mut sets: Vec<String> = Vec::new();
    for phase in ["idle", "connect", "subscribe", "storm"] {
        sets.push(format!("phase.{phase}.connections=20"));
        sets.push(format!("phase.{phase}.duration=1s"));
    }
    for phase in ["connect", "subscribe"] {
        sets.push(format!("phase.{phase}.rate=50"));
        sets.push(format!("phase.{phase}.warmup=0s"));
    }
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let bundle = run_on_mosquitto("broker-connects", &sets);
    let connects: Vec<u64> = bundle.result.phases.iter().map(|phase| completed(phase, "connect")).collect();
    assert_eq!(connects, [0, 50, 50, 20], "{bundle}");
}

#[test]
fn one_message_that_the_broker_treats_badly_fails_the_run() {
    let lost = "messages lost (run): 0 expected, 1 found";
    let foreign = "messages delivered that were not sent (run): 0 expected, 1 found";
    for (fault, expected) in [
        (Fault::None, &[][..]),
        (Fault::Lose, &[lost]),
        (Fault::Swap, &["messages delivered out of order (run): 0 expected, 1 found"]),
        (Fault::Change, &[lost, foreign]),
        (Fault::Misroute, &[lost, foreign]),
        // At QoS 1 a broker may deliver a message twice.
        (Fault::Double, &[]),
    ] {
        let address = faulty_broker::start(fault).to_string();
        let sets: Vec<&str> = FEW_PAIRS.into_iter().chain(["phase.run.drain=1s"]).collect();
        let bundle = run(&address, "broker-pairs", &sets);
        let text = bundle.to_string();
        let wrong: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("WRONG ")).collect();
        assert_eq!(wrong, expected, "{fault:?}: {text}");
        assert_eq!(bundle.result.validity().is_quotable(), expected.is_empty(), "{fault:?}: {text}");
        assert_eq!(text.contains(", 1 came more than once"), fault == Fault::Double, "{text}");
    }
}

#[test]
fn what_no_broker_can_be_asked_is_refused_with_what_to_do() {
    for (name, set, expected) in [
        ("broker-pairs", "dataset.qos=3", "use 0, 1 or 2"),
        ("broker-pairs", "dataset.payload_bytes=10", "use 36"),
        ("broker-pairs", "dataset.topic='a/#'", "must be a topic name"),
        ("broker-pairs", "dataset.topic='a/{devise}'", "must be a topic name"),
        ("broker-pairs", "phase.run.mix.subscribers.arrival=poisson", "arrival = \"idle\""),
        ("broker-pairs", "phase.run.mix.subscribers.payload_bytes=50", "other topics, messages or devices"),
        (
            "broker-pairs",
            "phase.run.mix.subscribers.role=publish phase.run.mix.subscribers.arrival=fixed",
            "at most one mix that publishes",
        ),
        ("broker-pairs", "dataset.rolle=publish", "did you mean `role`"),
        ("broker-offline", "phase.return.clean_start=true", "needs clean_start = false"),
        ("broker-offline", "phase.leave.session_expiry_s=0", "needs session_expiry_s"),
        ("broker-connects", "dataset.topic=x", "{subscription}"),
    ] {
        let sets: Vec<String> =
            set.split(' ').chain(["target.url=mqtt://127.0.0.1:1"]).map(str::to_owned).collect();
        let scenario = Scenario::load(name, &sets);
        let options = Options { quiet: true, ..Options::default() };
        let error = scenario
            .and_then(|scenario| {
                runner::run(&scenario, &options, &Context::default(), &mut runner::alone).map(drop)
            })
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{set}: {error}");
    }
}
