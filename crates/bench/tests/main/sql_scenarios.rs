//! Whole runs of the built-in scenarios of drivers sql and host.

use std::thread;
use std::time::Duration;

use bench::Context;
use bench::runner::{self, Options};
use clients::sql::Address;
use load::protocol::OperationChoice;
use load::result::{Arrival, Bundle, merge};
use load::scenario::Scenario;
use targets::sql::{OltpScript, ServerCounters, Sql, Tables, Transaction};

use crate::databases::Database;
use crate::peers::required;

/// Small and short, without limits for the speed of the machine.
const SMALL: [&str; 8] = [
    "dataset.tables=3",
    "scale=0.0001",
    "phase.run.connections=6",
    "phase.run.warmup=100ms",
    "phase.run.duration=1500ms",
    "gates.lag_p99_us_max=1e9",
    "gates.steal_share_max=1",
    "gates.error_share_max=1",
];

fn scenario(name: &str, url: &str, sets: &[&str]) -> Scenario {
    let mut all = vec![format!("target.url={url}")];
    all.extend(SMALL.iter().chain(sets).map(|set| (*set).to_owned()));
    Scenario::load(name, &all).unwrap()
}

fn run(scenario: &Scenario, phases: &[&str], part: Option<(u32, u32)>) -> bench::Result<Bundle> {
    let phases = phases.iter().map(|phase| (*phase).to_owned()).collect();
    let options = Options { phases, part, quiet: true, ..Options::default() };
    runner::run(scenario, &options, &Context::default(), &mut runner::alone)
}

#[test]
fn sysbenchs_scenario_loads_runs_verifies_and_cleans_up() {
    let database = Database::mariadb();
    let scenario = scenario("sysbench-oltp-read-write", &database.url("sbtest"), &[]);
    let error = run(&scenario, &["run"], None).unwrap_err().to_string();
    assert!(
        error.contains("no table sbtest1") && error.contains("sysbench-oltp-read-write --phase load"),
        "{error}"
    );
    let load = "--phase load --set dataset.tables=3 --set scale=0.0001 --set phase.run.connections=6 ";
    assert!(error.contains(load) && error.contains(" --target mysql://sbtest@127.0.0.1:"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    let bundle = run(&scenario, &[], None).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let checks = &bundle.result.verification;
    assert!(checks.iter().any(|check| check.what.contains("the server counted")), "{checks:?}");
    let after_load: Vec<_> = checks.iter().filter(|check| check.what.contains("after the load")).collect();
    let found: Vec<&str> = after_load.iter().map(|check| check.found.as_str()).collect();
    assert_eq!(found, ["3000", "1 to 1000"], "{checks:?}");
    let main = bundle.main_phase().unwrap();
    assert!(
        main.total.counts.completed > 10 && main.cost.target_cpu_us_per_operation.unwrap() > 0.0,
        "{bundle}"
    );
    assert!(bundle.result.findings.iter().any(|f| f.contains("3000 rows went into 3 tables")), "{bundle}");
    let counted = bundle.result.findings.iter().filter(|finding| finding.contains(" statements: ")).count();
    assert_eq!(counted, 1, "those of the run, and not again after the clean-up: {bundle}");
    for name in
        ["mysql.Com_commit_per_s", "target.cpu_us_per_operation", "generator.rss_bytes", "host.busy_percent"]
    {
        assert!(bundle.telemetry.series(name).next().is_some(), "{name}");
    }
    assert!(!format!("{:?}", bundle.result).contains("s3cret"), "the password is in no result");
    assert!(run(&scenario, &["run"], None).is_err(), "the last phase dropped the tables");
}

#[test]
fn postgres_runs_the_same_scenario_in_two_processes() {
    let database = Database::postgres();
    let scenario = scenario("sysbench-oltp-point-select", &database.url("postgres"), &[]);
    let loaded = run(&scenario, &["load"], None).unwrap();
    let found: Vec<&str> = loaded.result.verification.iter().map(|check| check.found.as_str()).collect();
    assert_eq!(found, ["3000", "1 to 1000"], "{loaded}");
    let parts: Vec<Bundle> = thread::scope(|scope| {
        let part = |part| run(&scenario, &["run"], Some((part, 2))).unwrap();
        let handles: Vec<_> = (0..2).map(|number| scope.spawn(move || part(number))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let whole = merge(parts).unwrap();
    let main = whole.main_phase().unwrap();
    assert!(main.total.counts.completed > 100 && main.total.counts.misses == 0, "{whole}");
    assert!(whole.telemetry.series("postgres.tup_fetched_per_s").next().is_some());
    let threads: Vec<u32> = whole.result.generators.iter().map(|generator| generator.threads).collect();
    assert_eq!(threads, [3, 3], "every connection has a thread");
    // The other process of a load phase has nothing to do.
    let idle = run(&scenario, &["cleanup"], Some((1, 2))).unwrap();
    assert_eq!(idle.result.phases.len(), 1);
}

#[test]
fn two_processes_that_make_up_ids_do_not_meet() {
    let database = Database::mariadb();
    let scenario = scenario(
        "sysbench-oltp-insert",
        &database.url("sbtest"),
        &["dataset.auto_inc=false", "dataset.tables=1"],
    );
    run(&scenario, &["load"], None).unwrap();
    for part in 0..2 {
        let bundle = run(&scenario, &["run"], Some((part, 2))).unwrap();
        let counts = &bundle.main_phase().unwrap().total.counts;
        assert!(counts.completed > 100 && counts.errors.is_empty(), "{bundle}");
    }
}

/// The check of the server's statement counters.
fn counted(bundle: &Bundle) -> Option<bool> {
    let checks = &bundle.result.verification;
    checks.iter().find(|check| check.what.contains("the server counted")).map(|check| check.passed)
}

const RANDOM_SELECTS: [&str; 2] = ["sysbench-select-random-points", "sysbench-select-random-ranges"];

#[test]
fn random_points_and_ranges_are_one_statement_each() {
    let database = Database::mariadb();
    let [operation, only] = ["select_random_points", "dataset.tables=1"];
    for name in RANDOM_SELECTS {
        let bundle = run(&scenario(name, &database.url("sbtest"), &[only]), &[], None).unwrap();
        assert!(bundle.result.validity().is_quotable(), "{bundle}");
        assert_eq!(counted(&bundle), Some(true), "{bundle}");
    }
    let text = format!("operation.{operation}.protocol=text");
    let as_text = scenario(RANDOM_SELECTS[0], &database.url("sbtest"), &[only, &text]);
    assert_eq!(counted(&run(&as_text, &[], None).unwrap()), Some(true));
    let error = run(&scenario(RANDOM_SELECTS[0], &database.url("sbtest"), &[]), &[], None).unwrap_err();
    assert!(error.to_string().contains("one table only"), "{error}");
}

/// Runs a statement outside of the load.
fn ask(url: &str, statement: &str) {
    let address = Address::parse(url).unwrap();
    let only_point = vec![Transaction::of(OltpScript::PointSelect)];
    let choice = OperationChoice::of_all(&[1]).unwrap();
    let sql = Sql::new(address, Tables::default(), only_point, choice, 1, Duration::from_secs(10)).unwrap();
    sql.ask(statement).unwrap();
}

#[test]
fn postgres_statements_are_compared_where_it_counts_them() {
    let database = Database::postgres();
    let url = database.url("postgres");
    let names = [RANDOM_SELECTS[0], RANDOM_SELECTS[1], "sysbench-oltp-read-write"];
    // With one connection no other one causes a refusal.
    let sets = ["dataset.tables=1", "phase.run.connections=1"];
    let without = run(&scenario(names[0], &url, &sets), &[], None).unwrap();
    assert_eq!(counted(&without), None);
    assert!(without.result.findings.iter().any(|f| f.contains("pg_stat_statements")), "{without}");
    let mut counters = ServerCounters::connect(&Address::parse(&url).unwrap()).unwrap();
    assert!(counters.statements().unwrap().is_none());
    ask(&url, "CREATE EXTENSION pg_stat_statements");
    assert!(counters.statements().unwrap().is_some());
    for name in names {
        let bundle = run(&scenario(name, &url, &sets), &[], None).unwrap();
        assert_eq!(counted(&bundle), Some(true), "{bundle}");
        assert!(bundle.result.validity().is_quotable(), "{bundle}");
    }
}

#[test]
fn the_machine_is_measured_by_every_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let mut sets = vec![
        format!("dataset.directory={}", directory.path().display()),
        "gates.steal_share_max=1".to_owned(),
    ];
    let names = Scenario::load("host-cpu", &[]).unwrap().phases.into_iter().map(|phase| phase.name);
    let names: Vec<String> = names.filter(|name| name.ends_with("-1")).collect();
    for name in &names {
        sets.push(format!("phase.{name}.duration=1s"));
        sets.push(format!("phase.{name}.warmup=0s"));
    }
    let scenario = Scenario::load("host-cpu", &sets).unwrap();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bundle = run(&scenario, &names, None).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let phases = &bundle.result.phases;
    assert!(phases.len() == 12 && phases.iter().all(|phase| phase.total.counts.completed > 0), "{bundle}");
    let findings = &bundle.result.findings;
    assert!(findings.iter().any(|f| f.contains("per second by one thread")), "{bundle}");
}

#[test]
fn a_pass_of_all_processors_has_a_thread_for_each() {
    let sets = ["phase.integer-all.duration=300ms", "phase.integer-all.warmup=0s", "gates.steal_share_max=1"];
    let scenario = Scenario::load("host-cpu", &sets.map(str::to_owned)).unwrap();
    let bundle = run(&scenario, &["integer-all"], None).unwrap();
    let [phase] = &bundle.result.phases[..] else { panic!("{bundle}") };
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(phase.connections as usize, processors, "{bundle}");
    let asked = &bundle.result.scenario.configuration["phase"];
    let asked = asked.as_array().unwrap().iter().find(|phase| phase["name"] == "integer-all").unwrap();
    assert_eq!(asked["connections"], processors, "the result says how many they were");
    let typo = ["phase.integer-all.conections=3".to_owned()];
    let error = run(&Scenario::load("host-cpu", &typo).unwrap(), &["integer-all"], None).unwrap_err();
    assert!(error.to_string().contains("did you mean `connections`?"), "{error}");
}

#[test]
fn the_disk_is_measured_by_fio() {
    required("fio", "fio");
    let directory = tempfile::tempdir().unwrap();
    let mut sets = vec![
        format!("dataset.directory={}", directory.path().display()),
        "dataset.disk_gib=100".to_owned(),
        "gates.steal_share_max=1".to_owned(),
    ];
    for name in ["randwrite", "randread", "write", "read"] {
        sets.push(format!("operation.{name}.size=2m"));
        sets.push(format!("operation.{name}.direct=false"));
        let engine = if name == "randread" { "libaio" } else { "psync" };
        sets.push(format!("operation.{name}.engine={engine}"));
        sets.push(format!("operation.{name}.depth=4"));
    }
    let scenario = Scenario::load("host-disk", &sets).unwrap();
    let bundle = run(&scenario, &[], None).unwrap();
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let completed: Vec<u64> = bundle.result.phases.iter().map(|phase| phase.total.counts.completed).collect();
    assert_eq!(completed, [512, 512, 2, 2]);
    // Through the page cache a queue of 4 has no effect.
    let one = Arrival::Closed { concurrency: 1, pause_us: 0 };
    assert!(bundle.result.phases.iter().all(|phase| phase.arrival == one), "{bundle}");
    assert!(bundle.result.findings.iter().any(|f| f.contains("times the quota")), "{bundle}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
