//! Scenarios against a real Redis: the right data is stored, the server's counters agree, and faults are reported.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bench::Context;
use bench::runner::{self, Options};
use clients::redis::{Login, RedisClient};
use load::result::{Bundle, merge};
use load::scenario::Scenario;
use targets::Counts;

use crate::databases::free_port;
use crate::peers::required;

/// A server on loopback without files. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(password: Option<&str>) -> Self {
        let program = required("redis-server", "redis-server");
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        command.arg("--dir").arg(directory.path()).stdout(Stdio::null());
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        let child = command.spawn().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut server = Self { child, address, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(
                Instant::now() < deadline && server.child.try_wait().unwrap().is_none(),
                "Redis does not start"
            );
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn control(&self) -> RedisClient {
        RedisClient::connect(self.address, None, &Login::default()).unwrap()
    }

    fn keys(&self) -> Vec<String> {
        let keys = self.control().list(&["KEYS", "*"]).unwrap();
        let mut keys: Vec<String> = keys.into_iter().map(|key| String::from_utf8(key).unwrap()).collect();
        keys.sort();
        keys
    }

    fn set(&self) -> String {
        format!("target.url=redis://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SCENARIO: &str = r#"
[scenario]
name = "test"
about = "loads and reads"
driver = "redis"
[target]
url = "redis://127.0.0.1:1"
[dataset]
prefix = "key-"
keys = [1_000, 1_999]
size = 20
[[operation]]
name = "set"
command = "SET __key__ __data__"
pattern = "P"
[[operation]]
name = "get"
command = "GET __key__"
weight = 3
[[operation]]
name = "touch"
command = "EXPIRE __key__ 1000"
[[phase]]
name = "load"
kind = "load"
operations = ["set"]
arrival = "closed"
connections = 7
window = 10
requests = "allkeys"
[[phase]]
name = "run"
operations = ["get", "touch"]
connections = 8
rate = 2_000
warmup = "200ms"
duration = "1s"
threads = 2
[gates]
lag_p99_us_max = 1e9
steal_share_max = 1
generator_core_max = 10
hit_share_min = 0.5
"#;

fn scenario(server: &Server, sets: &[&str]) -> Scenario {
    let mut all = vec![server.set()];
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    Scenario::parse(SCENARIO, &all).unwrap()
}

fn run(scenario: &Scenario, phases: &[&str]) -> bench::Result<Bundle> {
    let phases = phases.iter().map(|phase| (*phase).to_owned()).collect();
    let options = Options { phases, quiet: true, ..Options::default() };
    runner::run(scenario, &options, &Context::default(), &mut runner::alone)
}

fn completed(bundle: &Bundle, phase: &str, operation: &str) -> u64 {
    let phase = bundle.result.phases.iter().find(|p| p.name == phase).unwrap();
    phase.operations.iter().find(|o| o.name == operation).map_or(0, |o| o.counts.completed)
}

#[test]
fn what_is_loaded_is_read_and_the_server_counted_the_same() {
    let server = Server::start(None);
    let bundle = run(&scenario(&server, &[]), &[]).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let expected: Vec<String> = (1_000..2_000).map(|key| format!("key-{key}")).collect();
    assert_eq!(server.keys(), expected, "every key of the range and no other");
    // 7 ranges of 143 keys: the last client has 142 and starts again for its last operation.
    assert_eq!(completed(&bundle, "load", "set"), 7 * 143);
    let (gets, touches) = (completed(&bundle, "run", "get"), completed(&bundle, "run", "touch"));
    let share = gets as f64 / (gets + touches) as f64;
    assert!((share - 0.75).abs() < 0.02, "{gets} gets, {touches} touches");
    let checks: Vec<&str> = bundle.result.verification.iter().map(|check| check.what.as_str()).collect();
    assert_eq!(checks.len(), 5, "{checks:?}");
    assert!(
        bundle.result.findings.iter().any(|f| f.contains("stored/logical")),
        "{:?}",
        bundle.result.findings
    );
    let run = bundle.main_phase().unwrap();
    assert_eq!((run.name.as_str(), run.total.counts.misses), ("run", 0));
    assert!(run.cost.target_cpu_us_per_operation.is_some(), "the process is found by what the server says");
}

#[test]
fn a_load_whose_keys_are_gone_or_that_left_others_is_found_out() {
    let server = Server::start(None);
    let failed = |sets: &[&str]| -> Vec<String> {
        let bundle = run(&scenario(&server, sets), &["load"]).unwrap();
        let failed = bundle.result.verification.into_iter().filter(|check| !check.passed);
        failed.map(|check| format!("{} {}/{}", check.what, check.found, check.expected)).collect()
    };
    let mut control = server.control();
    assert!(failed(&[]).is_empty());
    control.text(&["FLUSHALL"]).unwrap();
    // The memory limit makes the server evict keys.
    let used: u64 = control.info("memory").unwrap()["used_memory"].parse().unwrap();
    control.text(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]).unwrap();
    control.text(&["CONFIG", "SET", "maxmemory", &(used + 8_000_000).to_string()]).unwrap();
    let gone = failed(&["dataset.size=40_000"]);
    assert!(matches!(&gone[..], [only] if only.starts_with("sampled keys of the data set")), "{gone:?}");
    control.text(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    for goes_again in ["DEL __key__", "SET __key__ __data__ PX 1"] {
        let command = format!("operation.set.command={goes_again}");
        assert!(failed(&[&command]).is_empty(), "{goes_again}");
    }
    assert!(
        failed(&["phase.load.duration=1ms", "phase.load.window=1"]).is_empty(),
        "it did not come to its end"
    );
    // Expired keys are still counted for a while.
    control.text(&["FLUSHALL"]).unwrap();
    let eval = r#"operation.set.command=EVAL "redis.call('SET', KEYS[1]..':more', 1) return redis.call('SET', KEYS[1], 1)" 1 __key__"#;
    let more = failed(&[eval]);
    assert!(more.contains(&"keys more than the load has names for (load) 1000/0".to_owned()), "{more:?}");
}

#[test]
fn polling_is_told_apart_from_what_the_load_takes() {
    let server = Server::start(None);
    let bundle =
        run(&scenario(&server, &["phase.run.busy_poll_us=1000", "phase.run.rate=500"]), &[]).unwrap();
    let cost = &bundle.main_phase().unwrap().cost;
    let (working, polling) = (cost.generator_cpu_percent.unwrap(), cost.generator_polling_percent.unwrap());
    assert!(working > 0.0 && polling > 0.0, "{bundle}");
    let told = |sentence: &String| sentence.contains("the generator polled instead of sleeping");
    assert!(bundle.result.hides.iter().any(told), "{bundle}");
    let asleep = run(&scenario(&server, &["phase.run.rate=500"]), &["run"]).unwrap();
    assert_eq!(asleep.main_phase().unwrap().cost.generator_polling_percent, None);
    assert!(!asleep.result.hides.iter().any(told), "{asleep}");
}

/// A barrier for parts in threads, like that of processes.
#[derive(Default)]
struct Meeting {
    state: Mutex<Met>,
    changed: Condvar,
}

#[derive(Default)]
struct Met {
    times: usize,
    arrived: usize,
    sum: Counts,
    last: Counts,
}

impl Meeting {
    fn exchange(&self, parts: usize, counts: Counts) -> bench::Result<Option<Counts>> {
        let mut met = self.state.lock().unwrap();
        counts.into_iter().for_each(|(name, count)| *met.sum.entry(name).or_default() += count);
        met.arrived += 1;
        if met.arrived == parts {
            (met.last, met.arrived, met.times) = (std::mem::take(&mut met.sum), 0, met.times + 1);
            self.changed.notify_all();
            return Ok(Some(met.last.clone()));
        }
        let times = met.times;
        let wait = self.changed.wait_timeout_while(met, Duration::from_secs(60), |met| met.times == times);
        let (met, waited) = wait.unwrap();
        assert!(!waited.timed_out(), "another part has ended");
        Ok(Some(met.last.clone()))
    }
}

#[test]
fn several_processes_make_the_same_load_as_one() {
    let server = Server::start(None);
    let scenario = scenario(&server, &["phase.run.rate=500"]);
    let meeting = Meeting::default();
    let part = &|part| {
        let options = Options { part: Some((part, 3)), quiet: true, ..Options::default() };
        runner::run(&scenario, &options, &Context::default(), &mut |counts| meeting.exchange(3, counts))
            .unwrap()
    };
    let parts: Vec<Bundle> = thread::scope(|scope| {
        let handles: Vec<_> = (0..3).map(|number| scope.spawn(move || part(number))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let whole = merge(parts).unwrap();
    assert_eq!(completed(&whole, "load", "set"), 7 * 143);
    assert_eq!(server.keys().len(), 1_000);
    let planned = whole.main_phase().unwrap().total.counts.planned;
    assert!((350..650).contains(&planned), "{planned} planned of 500");
    let checks: Vec<(&str, bool)> =
        whole.result.verification.iter().map(|check| (check.expected.as_str(), check.passed)).collect();
    assert_eq!(checks.len(), 5, "{whole}");
    assert!(checks.iter().all(|(_, passed)| *passed) && checks[0].0 == "1001", "of all: {checks:?}");
    let stored = whole.result.findings.iter().filter(|finding| finding.contains("stored/logical")).count();
    assert_eq!(stored, 1, "{whole}");
}

/// FNV-1a of 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Keys and values are those of memtier. Debian 12 has no package of it, so a file contains them;
/// `scenarios/memtier-parity` compares with memtier itself.
#[test]
fn keys_and_values_are_those_that_memtier_makes() {
    let server = Server::start(None);
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/main/memtier-keys.txt");
    let known = std::fs::read_to_string(known).unwrap();
    let mut found = String::new();
    for (pattern, requests) in [("P", "allkeys"), ("R", "200"), ("S", "200"), ("G", "200"), ("Z", "200")] {
        let count = if requests == "allkeys" { "\"allkeys\"".to_owned() } else { requests.to_owned() };
        let sets = [
            format!("operation.set.pattern={pattern}"),
            format!("phase.load.requests={count}"),
            "phase.load.window=1".to_owned(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        run(&scenario(&server, &sets), &["load"]).unwrap();
        let keys = server.keys();
        let hash = fnv(keys.iter().flat_map(|key| key.bytes().chain([b'\n'])));
        found += &format!("{pattern} keys {} {hash:016x}\n", keys.len());
        if pattern == "P" {
            // Every key has one writer, so that values do not depend on the order.
            let value = |key: &String| server.control().list(&["GET", key]).unwrap().concat();
            let hash = fnv(keys.iter().flat_map(value));
            found += &format!("{pattern} values {} {hash:016x}\n", keys.len());
        }
        server.control().text(&["FLUSHALL"]).unwrap();
    }
    let known: String =
        known.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(found, known);
}

#[test]
fn a_data_set_that_is_not_there_is_said_with_the_command_that_loads_it() {
    let server = Server::start(Some("s3cret"));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("of mine.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let url = server.set().replace("redis://", "redis://:s3cret@");
    let sets = ["scale=0.5", "dataset.keys=[1, 9]", &url].map(str::to_owned);
    let scenario = Scenario::load(file.to_str().unwrap(), &sets).unwrap();
    let error = run(&scenario, &["run"]).unwrap_err().to_string();
    let command = format!(
        "Load it first: `tacho bench run '{}' --phase load --set scale=0.5 --set 'dataset.keys=[1, 9]' --target redis://{}`",
        file.display(),
        server.address
    );
    assert!(error.ends_with(&command), "{error}");
}

#[test]
fn a_wrong_or_missing_password_is_said_before_the_load() {
    let server = Server::start(Some("right"));
    let with = |url: String| {
        let scenario = Scenario::parse(SCENARIO, &[format!("target.url={url}")]).unwrap();
        run(&scenario, &["load"])
    };
    let error = with(format!("redis://:wrong@{}", server.address)).unwrap_err().to_string();
    assert!(error.contains("the login failed") && error.contains("WRONGPASS"), "{error}");
    let error = with(format!("redis://{}", server.address)).unwrap_err().to_string();
    assert!(error.contains("NOAUTH") && error.contains("TACHO_TARGET_PASSWORD"), "{error}");
    let bundle = with(format!("redis://:right@{}", server.address)).unwrap();
    assert_eq!(completed(&bundle, "load", "set"), 7 * 143);
    let json = serde_json::to_string(&bundle.result).unwrap();
    assert!(!json.contains("right@"), "a password is not published");
}

#[test]
fn a_server_that_dies_is_reported_with_its_second_and_nothing_hangs() {
    let mut server = Server::start(None);
    let scenario = scenario(&server, &["phase.run.duration=60s", "phase.run.rate=500"]);
    run(&scenario, &["load"]).unwrap();
    let began = Instant::now();
    let bundle = thread::scope(|scope| {
        let running = scope.spawn(|| run(&scenario, &["run"]).unwrap());
        thread::sleep(Duration::from_millis(1_500));
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        running.join().unwrap()
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(!bundle.result.valid, "{bundle}");
    let fault = &bundle.result.faults[0];
    assert!(fault.what.contains("the server closed all connections"), "{fault:?}");
    assert!((1.0..10.0).contains(&fault.at_s), "{fault:?}");
}

#[test]
fn a_run_that_is_interrupted_leaves_a_partial_bundle() {
    let server = Server::start(None);
    let scenario = scenario(&server, &["phase.run.duration=60s", "phase.run.rate=500"]);
    run(&scenario, &["load"]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options {
        phases: vec!["run".to_owned()],
        quiet: true,
        stop: Arc::clone(&stop),
        ..Options::default()
    };
    let bundle = thread::scope(|scope| {
        let running = scope
            .spawn(|| runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap());
        thread::sleep(Duration::from_millis(1_500));
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert!(
        bundle.result.partial.as_ref().is_some_and(|partial| partial.reason.contains("Ctrl-C")),
        "{bundle}"
    );
    assert!(completed(&bundle, "run", "get") > 100);
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("bundle");
    bundle.write(&directory).unwrap();
    assert!(Bundle::read(Path::new(&directory)).unwrap().to_string().starts_with("PARTIAL"));
}

#[test]
fn nobody_listening_and_a_server_that_never_answers_end_the_run() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scenario = Scenario::parse(SCENARIO, &[format!("target.url=redis://{unused}")]).unwrap();
    let error = run(&scenario, &["load"]).unwrap_err().to_string();
    assert!(error.contains("connecting to Redis at"), "{error}");

    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let set = format!("target.url=redis://{}", mute.local_addr().unwrap());
    let began = Instant::now();
    let error = run(&Scenario::parse(SCENARIO, &[set]).unwrap(), &["load"]).unwrap_err().to_string();
    assert!(error.contains("no answer within 10 s"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(30));
}
