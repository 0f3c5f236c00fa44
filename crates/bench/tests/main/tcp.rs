//! Scenarios of driver `tcp` against small listeners that accept, refuse, never accept, reset and close, and against
//! nginx.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bench::Context;
use bench::command::BenchCommand;
use bench::runner::{self, Options};
use clap::Parser;
use load::result::{Arrival, Bundle, OperationCounts};
use load::scenario::Scenario;
use socket2::{Domain, SockRef, Socket, Type};

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

/// Three small phases. The tests change their settings.
const FILE: &str = r#"
[scenario]
name = "small"
about = "three numbers"
driver = "tcp"
[dataset]
application = "echo"
[[operation]]
name = "connect"
[[operation]]
name = "request"
[[phase]]
name = "connections"
test = "maxconn"
connections = 200
rate = 1_000
hold = "1s"
sample = 10
[[phase]]
name = "cps"
test = "cps"
connections = 50
rate = 400
duration = "2s"
[[phase]]
name = "qps"
test = "qps"
connections = 10
rate = 400
duration = "2s"
[gates]
error_share_max = 1.0
lag_p99_us_max = 1e9
generator_core_max = 10
steal_share_max = 1
"#;

/// Makes the phase `cps` a closed loop.
const CLOSED: &[&str] = &["phase.cps.arrival=closed", "phase.cps.close=after-request"];

/// Runs one phase, without limits for the generator's lag.
fn try_run(target: SocketAddr, phase: &str, sets: &[&str]) -> bench::Result<Bundle> {
    let mut all = vec![format!("target.url=tcp://{target}")];
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    let scenario = Scenario::parse(FILE, &all).unwrap();
    let options = Options { quiet: true, phases: vec![phase.to_owned()], ..Options::default() };
    runner::run(&scenario, &options, &Context::default(), &mut runner::alone)
}

fn run(target: SocketAddr, phase: &str, sets: &[&str]) -> Bundle {
    try_run(target, phase, sets).unwrap()
}

fn counts<'a>(bundle: &'a Bundle, phase: &str) -> &'a OperationCounts {
    let found = bundle.result.phases.iter().find(|known| known.name == phase);
    &found.unwrap_or_else(|| panic!("no phase {phase}: {bundle}")).total.counts
}

fn of_class(bundle: &Bundle, phase: &str, class: &str) -> OperationCounts {
    let found = bundle.result.phases.iter().find(|known| known.name == phase).unwrap();
    found.operations.iter().find(|known| known.name == class).map(|o| o.counts.clone()).unwrap_or_default()
}

fn finding<'a>(bundle: &'a Bundle, word: &str) -> &'a str {
    let found = bundle.result.findings.iter().find(|sentence| sentence.contains(word));
    found.unwrap_or_else(|| panic!("nothing about {word}: {bundle}"))
}

/// The counts of a listener.
#[derive(Debug, Default)]
struct Seen {
    accepted: AtomicU64,
    bytes: AtomicU64,
    /// The number of connections that ended with RST.
    resets: AtomicU64,
    /// The number of connections that ended with FIN.
    ends: AtomicU64,
    sources: Mutex<Vec<Ipv4Addr>>,
}

/// A listener that returns everything it receives, and counts.
fn echo() -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    let counted = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.accepted.fetch_add(1, Ordering::SeqCst);
            if let Ok(SocketAddr::V4(from)) = stream.peer_addr() {
                counted.sources.lock().unwrap().push(*from.ip());
            }
            let counted = Arc::clone(&counted);
            thread::spawn(move || serve(stream, &counted));
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, seen: &Seen) {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => {
                seen.ends.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Ok(count) => {
                seen.bytes.fetch_add(count as u64, Ordering::SeqCst);
                let _ = stream.write_all(&buffer[..count]);
            }
            Err(_) => {
                seen.resets.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    }
}

/// Waits until a count of another thread has its expected value.
fn becomes(count: &AtomicU64, expected: u64) {
    for _ in 0..1_000 {
        if count.load(Ordering::SeqCst) == expected {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(count.load(Ordering::SeqCst), expected);
}

/// Handles every connection but the first one, which checks whether the server answers, with `then`.
fn after_the_first(then: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut incoming = listener.incoming().flatten();
        drop(incoming.next());
        incoming.for_each(then);
    });
    address
}

#[test]
fn all_connections_are_opened_held_and_a_sample_is_asked() {
    let (target, seen) = echo();
    let bundle = run(target, "connections", &[]);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let open = counts(&bundle, "connections-open");
    assert_eq!((open.planned, open.sent, open.completed, open.errors_total()), (200, 200, 200, 0));
    let probe = counts(&bundle, "connections-probe");
    assert_eq!((probe.planned, probe.completed, probe.errors_total()), (20, 20, 0), "one of ten");
    let text = finding(&bundle, "asked for");
    assert!(text.contains("reached. 200 were established, 0 refused, 0 reset, 0 timed out"), "{text}");
    assert!(
        text.contains("After 1 s 200 of them were still open. Of a sample of 20 asked then, 20 answered."),
        "{text}"
    );
    assert!(finding(&bundle, "memory per connection").contains("generator"), "{bundle}");
    // One more connection checked whether the server answers.
    becomes(&seen.accepted, 201);
    becomes(&seen.ends, 201);
    assert_eq!(seen.bytes.load(Ordering::SeqCst), probe.bytes_sent);
}

#[test]
fn quiet_connections_ask_something_to_stay_alive() {
    let (target, seen) = echo();
    let sets = [
        "phase.connections.keep_alive=application",
        "phase.connections.keep_alive_every=1s",
        "phase.connections.hold=3s",
    ];
    let bundle = run(target, "connections", &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let probe = counts(&bundle, "connections-probe").bytes_sent;
    let each = probe / 20;
    let pings = (seen.bytes.load(Ordering::SeqCst) - probe) / each;
    assert!((200..=800).contains(&pings), "one to four of each of 200 connections: {pings}");
}

#[test]
fn every_way_of_closing_is_what_the_other_side_sees() {
    for (close, fin) in [("fin", true), ("rst", false), ("after-request", true)] {
        let (target, seen) = echo();
        let bundle = run(target, "cps", &[&format!("phase.cps.close={close}")]);
        assert!(bundle.result.validity().is_quotable(), "{close}: {bundle}");
        let connects = of_class(&bundle, "cps", "connect");
        assert!((700..=900).contains(&connects.completed), "{close}: Poisson around 800: {connects:?}");
        assert_eq!((connects.sent, connects.errors_total()), (connects.completed, 0), "{close}");
        becomes(&seen.accepted, connects.completed + 1);
        let requests = of_class(&bundle, "cps", "request");
        if close == "after-request" {
            assert_eq!(requests.completed, connects.completed);
            assert_eq!(seen.bytes.load(Ordering::SeqCst), requests.bytes_sent);
        } else {
            assert_eq!(requests, OperationCounts::default());
        }
        // A connection may be reset before it is accepted. The listener then sees the reset at the first read.
        let (ends, resets) = (&seen.ends, &seen.resets);
        becomes(if fin { ends } else { resets }, connects.completed + u64::from(fin));
        assert!(finding(&bundle, "a second were asked for").contains("400 connections a second"), "{bundle}");
    }
}

/// A closed port: the first connection is answered, and then nobody listens.
fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    target
}

#[test]
fn a_closed_loop_opens_the_next_connection_when_one_is_closed() {
    let (target, seen) = echo();
    let sets = [CLOSED, &["phase.cps.connections=5", "phase.cps.duration=300ms"]].concat();
    let bundle = run(target, "cps", &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let connects = of_class(&bundle, "cps", "connect");
    assert!(connects.completed > 10, "each of five again and again: {connects:?}");
    assert_eq!((connects.sent, connects.errors_total()), (connects.completed, 0));
    let requests = of_class(&bundle, "cps", "request");
    // Connects that were begun just before the end are answered after it.
    assert!((0..=5).contains(&(connects.completed - requests.completed)), "{bundle}");
    becomes(&seen.ends, seen.accepted.load(Ordering::SeqCst));
    let unmeasured = seen.accepted.load(Ordering::SeqCst) - 1 - connects.completed;
    assert!(unmeasured <= 5, "{unmeasured} more than were measured");
    let phase = bundle.result.phases.iter().find(|phase| phase.name == "cps").unwrap();
    assert_eq!(phase.arrival, Arrival::Closed { concurrency: 5, pause_us: 0 });
    let text = finding(&bundle, "connections a second were established");
    assert!(!text.contains("asked for"), "{text}");
}

#[test]
fn a_closed_loop_does_not_hammer_a_target_that_refuses_or_hangs_up() {
    for (target, application) in [(refusing(), "http"), (after_the_first(drop), "echo")] {
        let application = format!("dataset.application={application}");
        let own = [application.as_str(), "phase.cps.connections=5", "phase.cps.duration=1s"];
        let bundle = run(target, "cps", &[CLOSED, &own].concat());
        let connects = of_class(&bundle, "cps", "connect");
        assert_eq!(of_class(&bundle, "cps", "request").completed, 0, "{bundle}");
        // Five at once, and again a tenth of a second after each failure.
        assert!((10..=55).contains(&connects.sent), "{connects:?}");
    }
}

#[test]
fn what_waits_for_a_connection_until_the_end_was_not_sent() {
    let own = [
        "dataset.application=echo",
        "phase.cps.close=after-request",
        "phase.cps.connections=2",
        "phase.cps.rate=100",
        "phase.cps.duration=400ms",
        "phase.cps.drain=100ms",
    ];
    let bundle = run(after_the_first(std::mem::forget), "cps", &own);
    let counts = counts(&bundle, "cps");
    // Two connects, and requests without an answer on them. The others found no connection.
    assert_eq!((counts.completed, counts.sent), (2, 4), "{counts:?}");
    assert_eq!(counts.planned, counts.completed + counts.errors_total(), "{counts:?}");
    assert!(counts.errors_total() > 20, "{counts:?}");
}

#[test]
fn a_closed_loop_of_requests_has_one_for_each_connection() {
    let (target, seen) = echo();
    let bundle = run(target, "qps", &["phase.qps.arrival=closed", "phase.qps.duration=300ms"]);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let requests = counts(&bundle, "qps");
    assert!(requests.completed > 20, "{requests:?}");
    assert_eq!((requests.sent, requests.errors_total()), (requests.completed, 0));
    becomes(&seen.accepted, 11);
    let each = requests.bytes_sent / requests.sent;
    let unmeasured = seen.bytes.load(Ordering::SeqCst) / each - requests.sent;
    assert!(unmeasured <= 10, "{unmeasured} more than were measured");
}

#[test]
fn requests_follow_their_schedule_on_open_connections() {
    let (target, seen) = echo();
    let bundle = run(target, "qps", &[]);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let requests = counts(&bundle, "qps");
    assert!((700..=900).contains(&requests.completed), "{requests:?}");
    assert_eq!((requests.planned, requests.errors_total()), (requests.completed, 0));
    becomes(&seen.accepted, 11);
    assert_eq!(seen.bytes.load(Ordering::SeqCst), requests.bytes_sent);
}

/// A local process stands for `ssh HOST tacho bench worker`: it communicates by its standard input and output.
#[test]
fn a_process_that_a_command_starts_makes_a_part_of_the_load() {
    let program = crate::faults::program();
    let (target, seen) = echo();
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = (directory.path().join("three.toml"), directory.path().join("result"));
    std::fs::write(&file, FILE).unwrap();
    let (worker_arguments, server_binary) = (vec!["worker".to_owned()], program.clone());
    let context = Context { server_binary, worker_arguments, ..Context::default() };
    let words = |command: &str| -> Vec<String> {
        let fixed = [
            "bench",
            "run",
            file.to_str().unwrap(),
            "--phase",
            "qps",
            "--quiet",
            "--worker-command",
            command,
        ];
        let (target, out) = (format!("tcp://{target}"), out.display().to_string());
        let own = ["--target".to_owned(), target, "--out".to_owned(), out];
        fixed.map(str::to_owned).into_iter().chain(own).collect()
    };
    let run = |command: &str| {
        let line = Line::try_parse_from(words(command)).unwrap();
        bench::command::run(&line.command, &context, &mut Vec::new())
    };
    let talks = run("echo welcome").unwrap_err().to_string();
    assert!(
        talks.contains("generator process 2 said something else") && talks.contains("welcome"),
        "{talks}"
    );
    let gone = run("false").unwrap_err().to_string();
    assert!(gone.contains("generator process 2"), "{gone}");
    let own = format!("{} worker", program.display());
    let line = Line::try_parse_from(words(&own)).unwrap();
    let other = Context { commit: Some("another".to_owned()), ..context.clone() };
    let other = bench::command::run(&line.command, &other, &mut Vec::new()).unwrap_err().to_string();
    assert!(other.contains("build unknown") && other.contains("build another"), "{other}");
    run(&own).unwrap();
    let bundle = Bundle::read(&out).unwrap();
    assert_eq!((bundle.result.generators.len(), bundle.result.phases[0].connections), (2, 10), "{bundle}");
    let requests = counts(&bundle, "qps");
    assert!((700..=900).contains(&requests.completed), "{requests:?}");
    // Five of each, and one check of the target by each run's processes, except for those with different builds.
    assert!(seen.accepted.load(Ordering::SeqCst) >= 12, "{:?}", seen.accepted);
}

#[test]
fn sources_share_the_connections() {
    let (target, seen) = echo();
    let bundle = run(target, "connections", &["dataset.sources=127.0.0.9-127.0.0.12"]);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    becomes(&seen.accepted, 201);
    let sources = seen.sources.lock().unwrap();
    for last in 9..=12 {
        let from = Ipv4Addr::new(127, 0, 0, last);
        assert_eq!(sources.iter().filter(|source| **source == from).count(), 50, "{from}");
    }
}

#[test]
fn refusals_are_counted_and_end_the_attempts() {
    let target = refusing();
    let sets = [
        "dataset.application=http",
        "phase.connections.give_up_last=50",
        "phase.connections.give_up_failures=50",
    ];
    let bundle = run(target, "connections", &sets);
    let open = counts(&bundle, "connections-open");
    assert_eq!((open.completed, open.errors_total()), (0, open.sent), "{bundle}");
    assert!((50..200).contains(&open.sent), "given up early: {open:?}");
    let text = finding(&bundle, "asked for");
    assert!(text.contains(&format!("NOT reached. 0 were established, {} refused", open.sent)), "{text}");
    assert!(text.contains(&format!("{} were not tried any more", 200 - open.sent)), "{text}");
}

/// A listener with room for two connections that are not accepted. It accepts the first one, which checks whether the
/// server answers.
fn narrow() -> (TcpListener, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(1).unwrap();
    let listener: TcpListener = socket.into();
    let target = listener.local_addr().unwrap();
    (listener, target)
}

#[test]
fn a_full_backlog_shows_as_repeated_syns_and_timeouts() {
    let (listener, target) = narrow();
    let accepting = thread::spawn(move || {
        drop(listener.accept());
        listener
    });
    let sets = [
        "phase.connections.connections=10",
        "phase.connections.application=none",
        "dataset.connect_timeout=2500ms",
    ];
    let bundle = run(target, "connections", &sets);
    let open = counts(&bundle, "connections-open");
    assert_eq!((open.planned, open.completed), (10, 2), "{bundle}");
    let text = finding(&bundle, "asked for");
    assert!(text.contains("2 were established, 0 refused, 0 reset, 8 timed out"), "{text}");
    assert!(text.contains("of 8 connects were sent again"), "{text}");
    assert!(open.extra["SYNs sent again"] >= 8, "after a second at the latest: {open:?}");
    drop(accepting.join());
}

/// The number of connects in progress (SYN_SENT, 02) to a port, according to proc_net_tcp(5).
fn under_way(port: u16) -> usize {
    let suffix = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns.filter(|c| c.len() > 3 && c[2].ends_with(&suffix) && c[3] == "02").count()
}

#[test]
fn a_backlog_that_is_emptied_late_shows_as_latency() {
    let (listener, target) = narrow();
    thread::spawn(move || {
        drop(listener.accept());
        while under_way(target.port()) < 8 {
            thread::sleep(Duration::from_millis(1));
        }
        // From here on all are accepted: two at once, and those whose SYN is sent again.
        let held: Vec<TcpStream> = listener.incoming().flatten().collect();
        drop(held);
    });
    let sets = ["phase.connections.connections=10", "phase.connections.application=none"];
    let bundle = run(target, "connections", &sets);
    let open = counts(&bundle, "connections-open");
    assert_eq!((open.planned, open.completed, open.errors_total()), (10, 10, 0), "{bundle}");
    assert_eq!(open.extra["connects whose SYN was sent again"], 8, "{open:?}");
    let phase = bundle.result.phases.iter().find(|phase| phase.name == "connections-open").unwrap();
    let response = phase.total.response.as_ref().unwrap();
    assert!(response.quantile_us(0.5).unwrap() > 5e5, "the kernel waits for a second: {response:?}");
}

#[test]
fn connections_that_the_target_ends_are_losses() {
    let resetting =
        || after_the_first(|stream| SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap());
    let closing = || after_the_first(drop);
    // Each run has its own listener, because every run first checks whether the server answers.
    for (targets, closes) in [([resetting(), resetting()], false), ([closing(), closing()], true)] {
        let sets = ["phase.connections.connections=20", "phase.connections.application=none"];
        let bundle = run(targets[0], "connections", &sets);
        let text = finding(&bundle, "asked for");
        assert!(text.contains("NOT reached") && text.contains("0 of them were still open"), "{text}");
        if closes {
            assert!(!bundle.result.validity().is_quotable(), "connections that were not held: {bundle}");
        }
        let bundle = run(targets[1], "cps", &["phase.cps.close=after-request"]);
        let connects = of_class(&bundle, "cps", "connect");
        assert!(connects.sent > 700, "{connects:?}");
        assert_eq!(connects.sent, connects.completed + connects.errors_total(), "{connects:?}");
        assert_eq!(of_class(&bundle, "cps", "request").completed, 0, "{bundle}");
        let lost = counts(&bundle, "cps").errors.iter().filter(|(what, _)| what.contains("connection lost"));
        assert_eq!(lost.map(|(_, count)| count).sum::<u64>(), connects.completed, "{bundle}");
    }
}

#[test]
fn limits_are_named_before_anything_is_opened() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    for (phase, set, parts) in [
        (
            "connections",
            "phase.connections.connections=4000000000",
            ["open files are needed", "RLIMIT_NOFILE", "ulimit -Hn", "--workers"],
        ),
        (
            "cps",
            "dataset.sources=10.0.0.9-10.0.0.2",
            ["phase `cps`", "sources", "the last address", "the first"],
        ),
        ("qps", "dataset.application=none", ["phase `qps`", "application", "`http`", "nothing can be asked"]),
        ("cps", "seed=1", ["127.0.0.1:9", "does not accept a connection", "Start it", "--target URL"]),
    ] {
        let error = try_run(nobody, phase, &[set]).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}
