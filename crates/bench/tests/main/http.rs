//! Scenarios of driver `http` against nginx: its status page and its log agree with our counts, for both versions, with
//! connections that stay, that the server closes, and that carry one request.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::Context;
use bench::runner::{self, Options};
use load::result::{Arrival, Bundle};
use load::scenario::Scenario;
use rustix::process::{Pid, Signal, kill_process};

use crate::databases::free_port;
use crate::peers::required;

/// The size of the large file.
const LARGE_BYTES: usize = 300_000;

struct Nginx {
    child: Child,
    port: u16,
    h2_port: u16,
    directory: tempfile::TempDir,
}

impl Nginx {
    /// Starts nginx with `server` in its server block.
    fn start(server: &str) -> Self {
        let program = required("nginx", "nginx-light");
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().display();
        let (port, h2_port) = (free_port(), free_port());
        let user = if rustix::process::getuid().is_root() { "user root;" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {home}/{name};\n"))
            .collect();
        let text = format!(
            "{user}\ndaemon off;\nworker_processes 2;\npid {home}/pid;\nerror_log {home}/error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{\n{temporary}access_log {home}/access.log;\n\
             server {{\nlisten 127.0.0.1:{port};\nlisten 127.0.0.1:{h2_port} http2;\n{server}\n\
             location / {{ return 200 \"hello\"; }}\n\
             location ~ ^/item/(\\d+)$ {{ return 200 \"item $1\\n\"; }}\n\
             location /file {{ root {home}; }}\n\
             location /chunked/ {{ alias {home}/file/; sub_filter_types *; sub_filter_once off; sub_filter a bb; }}\n\
             location /missing {{ return 404; }}\nlocation /empty {{ return 204; }}\n\
             location /status {{ stub_status; access_log off; }}\n}}\n}}\n"
        );
        fs::create_dir(directory.path().join("file")).unwrap();
        fs::write(directory.path().join("file/large"), vec![b'a'; LARGE_BYTES]).unwrap();
        let file = directory.path().join("nginx.conf");
        fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).arg("-e").arg(directory.path().join("first-error.log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut nginx = Self { child: command.spawn().unwrap(), port, h2_port, directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let alive = nginx.child.try_wait().unwrap().is_none();
            assert!(Instant::now() < deadline && alive, "nginx does not start: {}", nginx.errors());
            thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    fn errors(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
        read("error.log") + &read("first-error.log")
    }

    /// The lines of the access log, without the request for the server's name.
    fn log(&self) -> Vec<String> {
        let path: PathBuf = self.directory.path().join("access.log");
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.contains("\"HEAD / HTTP/1.1\"")).map(str::to_owned).collect()
    }

    /// Stops it in order, because workers would survive SIGKILL.
    fn stop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32)
            && self.child.try_wait().unwrap().is_none()
        {
            kill_process(pid, Signal::TERM).unwrap();
        }
        self.child.wait().unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

const SCENARIO: &str = r#"
[scenario]
name = "test"
about = "asks"
driver = "http"
[target]
url = "http://127.0.0.1:1/"
[[operation]]
name = "get"
request = "GET /"
expect_body = "hello"
[[operation]]
name = "item"
request = "GET /item/__key__"
expect_body = """item __key__
"""
[[operation]]
name = "post"
request = "POST /item/__key__"
body = "the number is __key__"
headers = { Content-Type = "text/plain" }
[[operation]]
name = "large"
request = "GET /file/large"
expect_bytes = 300_000
[[operation]]
name = "chunked"
request = "GET /chunked/large"
expect_bytes = 600_000
[[operation]]
name = "head"
request = "HEAD /file/large"
expect_bytes = 0
[[operation]]
name = "absent"
request = "GET /missing"
status = [404]
[[operation]]
name = "empty"
request = "GET /empty"
status = [204]
[[phase]]
name = "run"
operations = ["get", "item"]
connections = 4
rate = 1_000
duration = "1s"
threads = 2
[gates]
lag_p99_us_max = 1e9
steal_share_max = 1
generator_core_max = 10
"#;

fn scenario(port: u16, nginx: &Nginx, sets: &[&str]) -> Scenario {
    let mut all = vec![
        format!("target.url=http://127.0.0.1:{port}/"),
        format!("dataset.nginx_status=http://127.0.0.1:{}/status", nginx.port),
    ];
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    Scenario::parse(SCENARIO, &all).unwrap()
}

fn run(scenario: &Scenario) -> bench::Result<Bundle> {
    let options = Options { quiet: true, ..Options::default() };
    runner::run(scenario, &options, &Context::default(), &mut runner::alone)
}

/// Runs it. Everything must be right but the timing of a busy machine.
fn good(port: u16, nginx: &Nginx, sets: &[&str]) -> Bundle {
    let bundle = run(&scenario(port, nginx, sets)).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{sets:?}: {bundle}\n{}", nginx.errors());
    let check = bundle.result.verification.iter().find(|check| check.what.contains("nginx counted"));
    assert!(check.is_some_and(|check| check.passed), "{:?}", bundle.result.verification);
    bundle
}

#[test]
fn requests_of_the_http2_scenario_are_those_in_the_log_of_nginx() {
    let mut nginx = Nginx::start("");
    let sets = [
        format!("target.url=http://127.0.0.1:{}/", nginx.h2_port),
        format!("dataset.nginx_status=http://127.0.0.1:{}/status", nginx.port),
        "operation.get.expect_body=hello".to_owned(),
        "phase.streams.rate=500".to_owned(),
        "phase.streams.warmup=0s".to_owned(),
        "phase.streams.duration=1s".to_owned(),
        "gates.lag_p99_us_max=1e9".to_owned(),
        "gates.steal_share_max=1".to_owned(),
        "gates.generator_core_max=10".to_owned(),
    ];
    let scenario = Scenario::load("http2-qps", &sets).unwrap();
    let options = Options { quiet: true, phases: vec!["streams".to_owned()], ..Options::default() };
    let bundle = runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}\n{}", nginx.errors());
    let check = bundle.result.verification.iter().find(|check| check.what.contains("nginx counted"));
    assert!(check.is_some_and(|check| check.passed), "{:?}", bundle.result.verification);
    nginx.stop();
    let answered = nginx.log().iter().filter(|line| line.contains("\"GET / HTTP/2.0\" 200")).count();
    assert_eq!(answered as u64, completed(&bundle, "get"));
    assert!(answered > 300, "Poisson around 500: {answered}");
}

fn completed(bundle: &Bundle, operation: &str) -> u64 {
    let phase = bundle.main_phase().unwrap();
    phase.operations.iter().find(|o| o.name == operation).map_or(0, |o| o.counts.completed)
}

/// The numbers in the finding about requests: written, connections, repeated.
fn written(bundle: &Bundle) -> [u64; 3] {
    let finding = bundle.result.findings.iter().find(|text| text.contains(" requests over ")).unwrap();
    let numbers: Vec<u64> = finding.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers[..].try_into().unwrap()
}

/// A closed loop with a fixed number of requests, independent of the speed.
const CLOSED: [&str; 3] = ["phase.run.arrival=closed", "phase.run.duration=300s", "phase.run.requests=150"];
/// Fewer requests, for large bodies.
const FEW: [&str; 1] = ["phase.run.requests=40"];
/// The requests of all four connections.
const REQUESTS: u64 = 600;

#[test]
fn every_answer_is_compared_and_nginx_counted_the_same() {
    let nginx = Nginx::start("");
    let bundle = good(nginx.port, &nginx, &[]);
    let (gets, items) = (completed(&bundle, "get"), completed(&bundle, "item"));
    assert!(gets > 300 && items > 300, "{gets} and {items} of about 1,000");
    let log = nginx.log();
    assert_eq!(log.len() as u64, gets + items);
    assert_eq!(log.iter().filter(|line| line.contains("GET /item/")).count() as u64, items);
    assert_eq!(written(&bundle)[1], 4, "connections stay");
    let phase = bundle.main_phase().unwrap();
    assert!(phase.cost.target_cpu_us_per_operation.is_some(), "master and workers are found by their port");
    assert!(bundle.result.target.product.as_ref().is_some_and(|product| product.starts_with("nginx/")));
}

#[test]
fn a_wrong_answer_makes_the_run_invalid() {
    let nginx = Nginx::start("");
    for (set, text) in [
        ("operation.get.expect_body=hallo", "the body is not"),
        ("operation.get.status=[204]", "status 200"),
        ("operation.item.expect_body=item __key__", "the body is not"),
    ] {
        let bundle = run(&scenario(nginx.port, &nginx, &[set])).unwrap();
        assert!(!bundle.result.valid && bundle.to_string().contains(text), "{set}: {bundle}");
    }
}

#[test]
fn a_staircase_has_a_result_for_each_step_up_and_down_again() {
    let nginx = Nginx::start("");
    let sets = [
        format!("target.url=http://127.0.0.1:{}/", nginx.port),
        format!("dataset.nginx_status=http://127.0.0.1:{}/status", nginx.port),
        "phase.climb.rate=200".to_owned(),
        "phase.climb.rate_to=600".to_owned(),
        "phase.climb.steps=3".to_owned(),
        "phase.climb.connections=4".to_owned(),
        "phase.climb.warmup=0s".to_owned(),
        "phase.climb.duration=1s".to_owned(),
        "gates.lag_p99_us_max=1e9".to_owned(),
        "gates.steal_share_max=1".to_owned(),
        "gates.generator_core_max=10".to_owned(),
    ];
    let bundle = run(&Scenario::load("http-steps", &sets).unwrap()).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}\n{}", nginx.errors());
    let steps: Vec<(&str, f64)> = bundle
        .result
        .phases
        .iter()
        .map(|phase| match &phase.arrival {
            Arrival::Open { process, rate_per_s, .. } if process == "poisson" => {
                (phase.name.as_str(), *rate_per_s)
            }
            other => panic!("{}: {other:?}", phase.name),
        })
        .collect();
    let rates = [200.0, 400.0, 600.0, 400.0, 200.0];
    let names = ["climb-1", "climb-2", "climb-3", "climb-4", "climb-5"];
    assert_eq!(steps, names.into_iter().zip(rates).collect::<Vec<_>>());
    for (phase, rate) in bundle.result.phases.iter().zip(rates) {
        let counts = &phase.total.counts;
        // One in a hundred thousand Poisson processes of 200 deviates by more.
        assert!((counts.planned as f64 / rate - 1.0).abs() < 0.33, "{}: {counts:?}", phase.name);
        assert!(counts.completed > 0 && phase.measured, "{}: {counts:?}", phase.name);
    }
    assert_eq!(written(&bundle)[1], 4, "connections stay from one step to the next");
}

#[test]
fn bodies_of_every_framing_are_read_to_their_end() {
    let nginx = Nginx::start("");
    let operations = r#"phase.run.operations=["large", "chunked", "head", "absent", "empty", "post"]"#;
    for window in ["phase.run.window=1", "phase.run.window=3"] {
        let sets: Vec<&str> = [operations, window].into_iter().chain(CLOSED).chain(FEW).collect();
        let bundle = good(nginx.port, &nginx, &sets);
        for name in ["large", "chunked", "head", "absent", "empty", "post"] {
            assert!(completed(&bundle, name) > 0, "{name}: {bundle}");
        }
    }
    for port in [nginx.port, nginx.h2_port] {
        let protocol = if port == nginx.h2_port { "phase.run.protocol=h2" } else { "phase.run.protocol=h1" };
        let sets: Vec<&str> = [operations, protocol, "phase.run.connection=close"]
            .into_iter()
            .chain(CLOSED)
            .chain(FEW)
            .collect();
        good(port, &nginx, &sets);
    }
}

#[test]
fn a_connection_for_each_request_is_one_connection_for_each_request() {
    let nginx = Nginx::start("");
    for (port, protocol) in [(nginx.port, "h1"), (nginx.h2_port, "h2")] {
        let protocol = format!("phase.run.protocol={protocol}");
        for sets in [&["phase.run.rate=500"][..], &CLOSED] {
            let sets: Vec<&str> =
                sets.iter().copied().chain([protocol.as_str(), "phase.run.connection=close"]).collect();
            let bundle = good(port, &nginx, &sets);
            let [requests, connections, repeated] = written(&bundle);
            assert!(requests > 300 && repeated == 0, "{requests}, {repeated}");
            // At the end a connection may be open without a request.
            assert!(
                (requests..=requests + 4).contains(&connections),
                "{sets:?}: {connections} for {requests}"
            );
        }
    }
}

#[test]
fn a_server_that_ends_connections_in_order_costs_no_request() {
    let nginx = Nginx::start("keepalive_requests 7;");
    for window in [1, 4] {
        let before = nginx.log().len() as u64;
        let window_set = format!("phase.run.window={window}");
        let sets: Vec<&str> = std::iter::once(window_set.as_str()).chain(CLOSED).collect();
        let bundle = good(nginx.port, &nginx, &sets);
        let [requests, connections, repeated] = written(&bundle);
        assert!(connections >= REQUESTS / 7, "{requests} requests, {connections} connections");
        assert_eq!(repeated > 0, window > 1, "only requests behind the last answer are written again");
        let completed = completed(&bundle, "get") + completed(&bundle, "item");
        assert_eq!((completed, requests - repeated), (REQUESTS, REQUESTS));
        assert_eq!(nginx.log().len() as u64 - before, REQUESTS);
    }
}

#[test]
fn streams_share_a_connection_and_survive_its_end() {
    let nginx = Nginx::start("keepalive_requests 50; http2_max_concurrent_streams 16;");
    let operations = r#"phase.run.operations=["get", "item", "post", "large", "chunked"]"#;
    let sets: Vec<&str> =
        ["phase.run.protocol=h2", "phase.run.window=32", operations].into_iter().chain(CLOSED).collect();
    let bundle = good(nginx.h2_port, &nginx, &sets);
    let [requests, connections, repeated] = written(&bundle);
    assert_eq!(requests - repeated, REQUESTS);
    assert!(connections > 4 && connections < requests / 10, "{requests} requests, {connections} connections");
    assert!(nginx.log().iter().any(|line| line.contains("POST /item/") && line.contains("HTTP/2.0")));
    let open = ["phase.run.protocol=h2", "phase.run.window=8"];
    good(nginx.h2_port, &nginx, &open);
}

#[test]
fn the_wrong_protocol_is_said() {
    let nginx = Nginx::start("");
    let error = run(&scenario(nginx.port, &nginx, &["phase.run.protocol=h2"])).unwrap_err().to_string();
    assert!(error.contains("speaks HTTP/1.1 here"), "{error}");
    let parsed = |set: &str| run(&scenario(nginx.port, &nginx, &[set])).unwrap_err().to_string();
    assert!(parsed("phase.run.conection=close").contains("did you mean `connection`"));
    assert!(parsed("operation.get.request=GET nowhere").contains("operation `get`: `nowhere` is not a path"));
    assert!(parsed("dataset.nginx_status=http://127.0.0.1:1/status").contains("127.0.0.1:1/status"));
}

#[test]
fn a_server_that_dies_is_reported_and_nothing_hangs() {
    let mut nginx = Nginx::start("");
    for connection in ["keep-alive", "close"] {
        let connection = format!("phase.run.connection={connection}");
        let mut scenario = scenario(nginx.port, &nginx, &["phase.run.duration=600s", &connection]);
        scenario.dataset.remove("nginx_status");
        let began = Instant::now();
        let bundle = thread::scope(|scope| {
            let running = scope.spawn(|| run(&scenario).unwrap());
            let deadline = Instant::now() + Duration::from_secs(60);
            while nginx.log().len() < 50 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
            nginx.stop();
            running.join().unwrap()
        });
        assert!(began.elapsed() < Duration::from_secs(360), "{:?}", began.elapsed());
        let fault = bundle.result.faults.first().map(|fault| fault.what.clone()).unwrap_or_default();
        assert!(
            !bundle.result.valid && fault.contains("the server closed all connections"),
            "{fault}: {bundle}"
        );
        nginx = Nginx::start("");
    }
}
