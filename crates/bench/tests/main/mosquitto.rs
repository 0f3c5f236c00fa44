//! Scenarios of driver `mqtt` against mosquitto: every quality of service and payload, pauses, reconnects.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::Context;
use bench::runner::{self, Options};
use load::result::Bundle;
use load::scenario::Scenario;

use crate::databases::free_port;
use crate::peers::required;

/// A running mosquitto. Dropping it kills it.
pub(crate) struct Broker {
    child: Child,
    pub(crate) port: u16,
    _directory: tempfile::TempDir,
}

impl Broker {
    pub(crate) fn start() -> Self {
        let program = required("mosquitto", "mosquitto");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mosquitto.conf");
        let port = free_port();
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlog_type none\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut broker = Self { child: command.spawn().unwrap(), port, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let alive = broker.child.try_wait().unwrap().is_none();
            assert!(Instant::now() < deadline && alive, "mosquitto does not start");
            thread::sleep(Duration::from_millis(20));
        }
        broker
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a built-in scenario without limits for the generator's lag, because the machine may be busy.
fn run(broker: &Broker, name: &str, sets: &[&str]) -> Bundle {
    let mut all = vec![format!("target.url=mqtt://127.0.0.1:{}", broker.port)];
    all.extend(
        ["gates.lag_p99_us_max=1e9", "gates.steal_share_max=1", "gates.generator_core_max=10"]
            .map(str::to_owned),
    );
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    let scenario = Scenario::load(name, &all).unwrap();
    let options = Options { quiet: true, ..Options::default() };
    runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap()
}

#[test]
fn every_quality_of_service_and_payload_is_acknowledged() {
    let broker = Broker::start();
    for (qos, payload) in [(0, "article"), (1, "telemetry"), (2, "meter"), (1, "vehicle")] {
        let sets = [
            format!("dataset.qos={qos}"),
            format!("dataset.payload={payload}"),
            format!("dataset.version=\"{}\"", if qos == 2 { "5" } else { "3.1.1" }),
        ];
        let mut sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        sets.extend([
            "phase.run.connections=20",
            "phase.run.rate=500",
            "phase.run.warmup=0s",
            "phase.run.duration=1s",
        ]);
        let bundle = run(&broker, "thingsboard", &sets);
        assert!(bundle.result.validity().is_quotable(), "qos {qos}: {bundle}");
        let counts = &bundle.main_phase().unwrap().total.counts;
        assert_eq!(counts.planned, counts.completed, "qos {qos}");
        assert!(counts.completed > 300, "{counts:?}");
    }
}

#[test]
fn mixes_of_a_phase_publish_what_each_of_them_says() {
    let broker = Broker::start();
    let mixes = r#"phase.run.mix=[{ name = "meters", connections = 4, qos = 2, payload = "meter", rate = 100, operations = ["meter"] },
        { name = "cars", connections = 8, qos = 0, payload = "vehicle", rate = 200 }]"#;
    let operations = r#"operation=[{ name = "publish" }, { name = "meter" }]"#;
    let sets = [
        operations,
        mixes,
        "phase.run.operations=['publish']",
        "phase.run.warmup=0s",
        "phase.run.duration=1s",
    ];
    let bundle = run(&broker, "thingsboard", &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let operations = &bundle.main_phase().unwrap().operations;
    let of = |name: &str| &operations.iter().find(|operation| operation.name == name).unwrap().counts;
    let (cars, meters) = (of("publish"), of("meter"));
    assert!((120..280).contains(&cars.completed) && (50..150).contains(&meters.completed), "{bundle}");
    assert_eq!(cars.bytes_received, 0, "at QoS 0 nothing is answered");
    assert_eq!(meters.bytes_received, 4 * meters.completed, "a PUBCOMP each");
}

#[test]
fn devices_that_pause_send_as_often_as_their_pause_allows() {
    let broker = Broker::start();
    let sets = [
        "phase.run.connections=20",
        "phase.run.pause=100ms",
        "phase.run.warmup=500ms",
        "phase.run.duration=1s",
    ];
    let bundle = run(&broker, "mqtt-closed", &sets);
    let counts = &bundle.main_phase().unwrap().total.counts;
    assert!((100..=220).contains(&counts.completed), "20 devices, at most 10 messages each: {counts:?}");
}

#[test]
fn a_fleet_that_is_cut_off_comes_back() {
    let broker = Broker::start();
    let mut sets = Vec::new();
    for phase in ["ramp", "steady", "storm", "after"] {
        sets.push(format!("phase.{phase}.connections=50"));
        sets.push(format!("phase.{phase}.duration=1s"));
    }
    sets.extend([
        "phase.ramp.rate=100".to_owned(),
        "phase.steady.rate=200".to_owned(),
        "phase.after.rate=200".to_owned(),
    ]);
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let bundle = run(&broker, "thingsboard-reconnect", &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let completed: Vec<u64> = bundle.result.phases.iter().map(|phase| phase.total.counts.completed).collect();
    assert_eq!((completed[0], completed[2]), (100, 50), "{bundle}");
    assert!(bundle.result.phases[2].operations.iter().all(|operation| operation.name == "connect"));
}
