//! Scenarios of driver hbase against a scripted server: what is written is read, and faults are repeated or reported.

use bench::Context;
use bench::runner::{self, Options};
use load::result::Bundle;
use load::scenario::Scenario;

use crate::hbase_server::{Fault, HbaseServer};

/// Little and without limits for the speed of the machine.
const SMALL: [&str; 3] = ["gates.lag_p99_us_max=1e9", "gates.steal_share_max=1", "dataset.value_bytes=100"];

fn run(name: &str, server: &HbaseServer, phases: &[&str], sets: &[&str]) -> bench::Result<Bundle> {
    let mut all = vec![format!("target.url={}", server.url())];
    all.extend(SMALL.iter().chain(sets).map(|set| (*set).to_owned()));
    let scenario = Scenario::load(name, &all).unwrap();
    let phases = phases.iter().map(|phase| (*phase).to_owned()).collect();
    let options = Options { phases, quiet: true, ..Options::default() };
    runner::run(&scenario, &options, &Context::default(), &mut runner::alone)
}

/// 4 connections write 25 random rows each.
fn write(faults: &[(&'static str, Fault)], sets: &[&str]) -> (HbaseServer, Bundle) {
    let server = HbaseServer::start(faults);
    let small = ["scale=1", "dataset.rows=1000", "phase.run.connections=4", "phase.run.rows=25"];
    let all: Vec<&str> = small.iter().chain(sets).copied().collect();
    let bundle = run("hbase-random-write", &server, &["run"], &all).unwrap();
    assert_eq!(server.faults_left(), 0, "{bundle}");
    (server, bundle)
}

fn failed(bundle: &Bundle) -> u64 {
    bundle.main_phase().unwrap().total.counts.errors_total()
}

fn found(bundle: &Bundle, text: &str) -> bool {
    bundle.result.findings.iter().any(|finding| finding.contains(text))
}

fn passed(bundle: &Bundle, what: &str) -> Option<bool> {
    bundle.result.verification.iter().find(|check| check.what.contains(what)).map(|check| check.passed)
}

#[test]
fn what_is_loaded_is_read_and_the_server_counted_the_same() {
    let server = HbaseServer::start(&[]);
    let sets = [
        "scale=1",
        "dataset.rows=500",
        "phase.load.connections=3",
        "phase.cold.connections=4",
        "phase.warm.connections=2",
        "phase.run.connections=4",
        "phase.cold.rows=20",
        "phase.run.rows=50",
    ];
    let bundle = run("hbase-random-read", &server, &["load", "cold", "warm", "run"], &sets).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    assert_eq!(server.rows(), 500);
    assert_eq!(bundle.result.target.product.as_deref(), Some("HBase 2.6.1"));
    assert_eq!(bundle.main_phase().unwrap().total.counts.completed, 200, "{bundle}");
    for what in ["rows written that", "rows read that", "acknowledged rows", "another value"] {
        assert_eq!(passed(&bundle, what), Some(true), "{what}: {bundle}");
    }
    assert!(found(&bundle, "PerformanceEvaluation would print"), "{bundle}");
    let scan = [
        "scale=1",
        "dataset.rows=500",
        "phase.run.connections=3",
        "phase.run.warmup=0s",
        "phase.run.duration=300ms",
    ];
    let bundle = run("hbase-scan", &server, &["run"], &scan).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    assert_eq!(passed(&bundle, "rows read that"), Some(true), "{bundle}");
}

#[test]
fn a_region_that_moves_is_found_again() {
    let moved = ("Mutate", Fault::Call("org.apache.hadoop.hbase.NotServingRegionException", false));
    let (server, bundle) = write(&[moved, moved], &[]);
    assert_eq!((failed(&bundle), server.writes()), (0, 100), "{bundle}");
    assert!(found(&bundle, "2 calls were repeated: NotServingRegionException"), "{bundle}");
    assert!(found(&bundle, "not compared with the region servers' counters"), "{bundle}");
    assert!(server.meta_scans() >= 3, "once at the begin, and again after each exception");
    assert_eq!(passed(&bundle, "acknowledged rows"), Some(true), "{bundle}");
}

#[test]
fn a_busy_region_is_asked_again_and_its_location_is_kept() {
    let busy = ("Mutate", Fault::Call("org.apache.hadoop.hbase.RegionTooBusyException", false));
    let (server, bundle) = write(&[busy], &[]);
    assert_eq!((failed(&bundle), server.writes()), (0, 100), "{bundle}");
    assert!(found(&bundle, "1 calls were repeated: RegionTooBusyException"), "{bundle}");
}

#[test]
fn an_exception_that_is_final_fails_its_operation() {
    let missing =
        ("Mutate", Fault::Call("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException", true));
    let (server, bundle) = write(&[missing], &[]);
    assert_eq!((failed(&bundle), server.writes()), (1, 99), "{bundle}");
    assert!(!bundle.result.validity().is_quotable(), "{bundle}");
    assert!(format!("{bundle:?}").contains("NoSuchColumnFamilyException"), "{bundle}");
}

#[test]
fn a_put_within_a_call_is_repeated_alone() {
    let busy = ("Multi", Fault::Action("org.apache.hadoop.hbase.RegionTooBusyException"));
    let (server, bundle) = write(&[busy], &["operation.write.write_buffer=5"]);
    assert_eq!((failed(&bundle), server.writes()), (0, 100), "no put twice: {bundle}");
    let missing =
        ("Multi", Fault::Action("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException"));
    let (_, bundle) = write(&[missing], &["operation.write.write_buffer=5"]);
    assert_eq!(failed(&bundle), 1, "{bundle}");
}

#[test]
fn a_connection_that_closes_is_opened_again() {
    let (server, bundle) = write(&[("Mutate", Fault::Close)], &[]);
    assert_eq!((failed(&bundle), server.writes()), (0, 101), "one put arrived twice: {bundle}");
    assert!(found(&bundle, "1 calls were repeated: closed by the server"), "{bundle}");
    assert!(found(&bundle, "1 lost"), "{bundle}");
}

#[test]
fn a_put_that_the_server_forgets_makes_the_run_invalid() {
    // Sequential rows: the forgotten one is not written again.
    let sets = ["operation.write.kind=sequential_write"];
    let (server, bundle) = write(&[("Mutate", Fault::Forget)], &sets);
    assert_eq!(server.rows(), 99);
    assert_eq!(passed(&bundle, "acknowledged rows"), Some(false), "{bundle}");
    assert!(!bundle.result.validity().is_quotable(), "{bundle}");
}

#[test]
fn a_server_that_is_not_hbase_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let sets = [format!("target.url=hbase+rpc://127.0.0.1:{port}")];
    let scenario = Scenario::load("hbase-scan", &sets).unwrap();
    let options = Options { quiet: true, ..Options::default() };
    let error = runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap_err();
    assert!(error.to_string().contains("the server is not an HBase"), "{error}");
}
