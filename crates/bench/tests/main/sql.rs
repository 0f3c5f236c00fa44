//! The SQL driver against real databases.

use std::time::Duration;

use clients::sql::Address;
use load::engine::{Ended, Event, Load, Outcome, Plan, Shared, threads};
use load::protocol::{Blocking as _, DueTime, OperationChoice};
use rustix::process::Signal;
use targets::sql::{
    Contents, LoadProgress, OltpScript, Protocol, ServerCounters, Sql, TablePer, Tables, Transaction,
    check_statements,
};

use crate::databases::Database;
use crate::plans;

const KINDS: [OltpScript; 9] = [
    OltpScript::ReadWrite,
    OltpScript::ReadOnly,
    OltpScript::WriteOnly,
    OltpScript::PointSelect,
    OltpScript::Insert,
    OltpScript::UpdateIndex,
    OltpScript::UpdateNonIndex,
    OltpScript::Delete,
    OltpScript::BulkInsert,
];

fn tables(table_size: u32) -> Tables {
    let uniform = load::dataset::Distribution::Uniform;
    Tables { tables: 2, table_size, distribution: uniform, ..Tables::default() }
}

/// Servers of several tests share a disk, and a statement may wait for it.
const SILENCE: Duration = Duration::from_secs(30);

fn sql(url: &str, tables: Tables, transaction: Transaction) -> Sql {
    Sql::new(
        Address::parse(url).unwrap(),
        tables,
        vec![transaction],
        OperationChoice::of_all(&[1]).unwrap(),
        7,
        SILENCE,
    )
    .unwrap()
}

fn plan(sql: &Sql, connections: u32, load: Load, duration_ms: u64) -> Plan {
    let target = sql.address().resolve().unwrap()[0];
    plans::plan(target, connections, load, Duration::from_millis(duration_ms))
}

const CLOSED: Load = Load::Closed { window: 1, pause: Duration::ZERO };

fn run<T>(sql: &Sql, plan: &Plan, on_event: impl FnMut(Event) -> T) -> Outcome<targets::sql::Session> {
    let mut on_event = on_event;
    threads::run(sql, plan, &Shared::default(), |event| _ = on_event(event)).unwrap()
}

/// Loads and runs every kind, prepared and as text. The server's counters must agree exactly with ours.
fn every_kind(url: &str, counts_statements: bool) {
    let address = Address::parse(url).unwrap();
    let mut server = ServerCounters::connect(&address).unwrap();
    for kind in KINDS {
        for (protocol, table_per) in
            [(Protocol::Prepared, TablePer::Group), (Protocol::Text, TablePer::Transaction)]
        {
            let transaction = Transaction { protocol, table_per, ..Transaction::of(kind) };
            let sql = sql(url, tables(400), transaction);
            sql.clean_up(3).unwrap();
            if kind == OltpScript::ReadWrite {
                let error = sql.check_dataset("tacho bench load it").unwrap_err().to_string();
                assert!(
                    error.contains("no table sbtest1") && error.contains("tacho bench load it"),
                    "{error}"
                );
            }
            let loaded = LoadProgress::default();
            sql.load(3, &loaded).unwrap();
            sql.check_dataset("").unwrap();
            let before = server.read().unwrap();
            let outcome = run(&sql, &plan(&sql, 3, CLOSED, 300), |_| ());
            let after = server.read().unwrap();
            let (segment, statements) = (&outcome.segments[0], sql.statements());
            let counts = segment.recorder.total().counts;
            assert!(counts.completed > 0 && segment.ended == Ended::Planned, "{kind:?}: {counts:?}");
            // Three connections on the same rows may deadlock; nothing else may fail.
            let retried: u64 = counts
                .errors
                .iter()
                .filter(|(what, _)| what.starts_with("tried again"))
                .map(|(_, n)| n)
                .sum();
            assert_eq!(
                (counts.errors_total(), counts.failed),
                (retried, 0),
                "{kind:?} {protocol:?}: {counts:?}"
            );
            if counts_statements {
                assert_eq!(
                    check_statements(&before, &after, &statements),
                    Vec::<String>::new(),
                    "{kind:?} {protocol:?}"
                );
            }
            if kind == OltpScript::ReadWrite && retried == 0 {
                let done = counts.completed;
                assert_eq!((statements.read, statements.write + statements.other), (14 * done, 6 * done));
                let delta = |name: &str| (after[name] - before[name]) as u64;
                if counts_statements {
                    let of =
                        ["Com_select", "Com_update", "Com_delete", "Com_insert", "Com_commit"].map(delta);
                    assert_eq!(of, [14 * done, 2 * done, done, done, done]);
                }
                assert_eq!(
                    (counts.hits, counts.misses),
                    (10 * done, 0),
                    "every id that is asked for is there"
                );
            }
        }
    }
}

/// A row follows from the seed, so two loads are equal, whichever connection fills which table.
fn loads_are_equal(url: &str, question: &str) {
    let mut sums = Vec::new();
    for connections in [1, 2] {
        let sql = sql(url, tables(500), Transaction::of(OltpScript::PointSelect));
        sql.clean_up(2).unwrap();
        let loaded = LoadProgress::default();
        sql.load(connections, &loaded).unwrap();
        assert_eq!((loaded.rows(), loaded.tables()), (1_000, 2));
        sums.push(sql.ask(question).unwrap());
        let error = sql.load(1, &loaded).unwrap_err().to_string();
        assert!(error.contains("sbtest1 is there already"), "{error}");
    }
    assert_eq!(sums[0], sums[1]);
    assert!(sums[0].contains("500"), "{}", sums[0]);
}

/// The contents check counts rows and looks at ids, table by table.
fn contents_are_counted(url: &str) {
    let sql = sql(url, tables(50), Transaction::of(OltpScript::PointSelect));
    sql.clean_up(2).unwrap();
    sql.load(2, &LoadProgress::default()).unwrap();
    assert_eq!(sql.contents().unwrap(), Some(Contents { rows: 100, ..Contents::default() }));
    sql.ask("INSERT INTO sbtest2 (id) VALUES (90)").unwrap();
    sql.ask("DELETE FROM sbtest1 WHERE id = 7").unwrap();
    let found = sql.contents().unwrap().unwrap();
    assert_eq!((found.rows, found.wrong_rows), (100, vec!["sbtest1 has 49".into(), "sbtest2 has 51".into()]));
    assert_eq!(found.wrong_ids, ["sbtest2 has 1 to 90"]);
}

/// Rows follow those of an earlier run, and of another run that alternates with this one. In a fresh table they start
/// at 1.
fn bulk_inserts_continue(url: &str) {
    let bulk = || sql(url, tables(10), Transaction::of(OltpScript::BulkInsert));
    let fresh = bulk();
    fresh.clean_up(2).unwrap();
    let refused =
        threads::run(&fresh, &plan(&fresh, 2, CLOSED, 100), &Shared::default(), |_| ()).unwrap_err();
    assert!(refused.to_string().contains("run the load phase with as many connections"), "{refused}");
    fresh.load(2, &LoadProgress::default()).unwrap();
    let mut rows = 0;
    for _ in 0..2 {
        let sql = bulk();
        let outcome = run(&sql, &plan(&sql, 2, CLOSED, 200), |_| ());
        let counts = outcome.segments[0].recorder.total().counts;
        assert!(counts.completed > 0 && counts.errors_total() == 0, "{counts:?}");
        rows += sql.statements().rows;
    }
    let (one, other) = (bulk(), bulk());
    let (mut mine, mut yours) = (one.open(0).unwrap(), other.open(0).unwrap());
    for _ in 0..2 {
        for (sql, session) in [(&one, &mut mine), (&other, &mut yours)] {
            sql.reseed(session, 5);
            sql.run(session, 0, DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 }).unwrap();
        }
    }
    rows += one.statements().rows + other.statements().rows;
    let found = ["sbtest1", "sbtest2"].map(|table| {
        let found = fresh.ask(&format!("SELECT COUNT(*), MIN(id), MAX(id), MAX(k) FROM {table}")).unwrap();
        found.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u64>>()
    });
    for found in &found {
        assert_eq!(found[1..], [1, found[0], found[0]], "without gaps: {found:?}");
    }
    assert_eq!(found[0][0] + found[1][0], rows, "every row was written once");
}

fn refusals_are_clear(database: &Database, missing: &str) {
    let refused = |url: &str| {
        let sql = sql(url, tables(10), Transaction::of(OltpScript::PointSelect));
        sql.check_dataset("").unwrap_err().to_string()
    };
    let error = refused(&database.wrong_url());
    assert!(error.contains("check user and password") && !error.contains("guess"), "{error}");
    let error = refused(&database.url("nothing_here"));
    assert!(error.contains(missing) && error.contains("CREATE DATABASE nothing_here"), "{error}");
}

/// An open loop continues its plan while the server is gone. The run ends, reports the time of the loss, and is
/// invalid.
fn a_death_is_noticed(mut database: Database, url: &str) {
    let sql = sql(url, tables(100), Transaction::of(OltpScript::PointSelect));
    sql.clean_up(2).unwrap();
    sql.load(2, &LoadProgress::default()).unwrap();
    let load = Load::Open { rate: 200.0, arrivals: load::schedule::Arrivals::Poisson, timer_us: 0, seed: 5 };
    let outcome = run(&sql, &plan(&sql, 4, load, 4_000), |event| {
        if matches!(&event, Event::Second(second) if second.index == 0) {
            database.kill();
        }
    });
    let segment = &outcome.segments[0];
    let lost_s = segment.first_loss_s.unwrap();
    assert!(segment.ended == Ended::AllLost || segment.ended == Ended::Planned);
    assert!((0.9..3.0).contains(&lost_s), "{lost_s}");
    let counts = segment.recorder.total().counts;
    assert!(counts.errors.keys().any(|what| what.contains("not opened again")), "{counts:?}");
    assert!(counts.completed < counts.planned);
}

/// A server that stands still answers nothing. The engine cuts the waiting connections after the drain time.
fn silence_does_not_hang(database: &Database, url: &str) {
    let sql = sql(url, tables(100), Transaction::of(OltpScript::PointSelect));
    sql.clean_up(2).unwrap();
    sql.load(2, &LoadProgress::default()).unwrap();
    let mut plan = plan(&sql, 2, CLOSED, 1_500);
    plan.segments[0].drain = Duration::from_millis(300);
    let outcome = run(&sql, &plan, |event| {
        if matches!(&event, Event::Second(second) if second.index == 0) {
            database.signal(Signal::STOP);
        }
    });
    database.signal(Signal::CONT);
    let counts = outcome.segments[0].recorder.total().counts;
    assert!(counts.errors.keys().any(|what| what.contains("not answered before the drain")), "{counts:?}");
}

#[test]
fn mariadb_gets_sysbenchs_statements() {
    let database = Database::mariadb();
    let url = database.url("sbtest");
    refusals_are_clear(&database, "Unknown database");
    every_kind(&url, true);
    loads_are_equal(
        &url,
        "SELECT COUNT(*), SUM(CRC32(CONCAT(id, k, c, pad))), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM sbtest2",
    );
    contents_are_counted(&url);
    bulk_inserts_continue(&url);
    silence_does_not_hang(&database, &url);
    a_death_is_noticed(database, &url);
}

#[test]
fn postgres_gets_sysbenchs_statements() {
    let database = Database::postgres();
    let url = database.url("postgres");
    refusals_are_clear(&database, "does not exist");
    every_kind(&url, false);
    loads_are_equal(
        &url,
        "SELECT COUNT(*), SUM(hashtext(id::text || k || c || pad)), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM sbtest2",
    );
    contents_are_counted(&url);
    bulk_inserts_continue(&url);
    a_death_is_noticed(database, &url);
}

#[test]
fn several_transactions_share_a_run_by_weight() {
    let database = Database::mariadb();
    let mix = vec![Transaction::of(OltpScript::PointSelect), Transaction::of(OltpScript::UpdateIndex)];
    let choice = OperationChoice::of_all(&[3, 1]).unwrap();
    let address = Address::parse(&database.url("sbtest")).unwrap();
    let sql = Sql::new(address, tables(1_000), mix, choice, 7, SILENCE).unwrap();
    sql.load(2, &LoadProgress::default()).unwrap();
    let mut plan = plan(&sql, 2, CLOSED, 500);
    plan.classes = vec!["read".to_owned(), "write".to_owned()];
    let outcome = run(&sql, &plan, |_| ());
    let completed: Vec<u64> =
        outcome.segments[0].recorder.classes().iter().map(|class| class.counts.completed).collect();
    let share = completed[0] as f64 / (completed[0] + completed[1]) as f64;
    assert!((share - 0.75).abs() < 0.1, "{completed:?}");
}

#[test]
fn too_many_prepared_statements_are_refused_with_what_to_do() {
    let database = Database::mariadb();
    let sql = sql(&database.url("sbtest"), tables(10), Transaction::of(OltpScript::ReadWrite));
    sql.load(2, &LoadProgress::default()).unwrap();
    sql.ask("SET GLOBAL max_prepared_stmt_count = 10").unwrap();
    let refused =
        threads::run(&sql, &plan(&sql, 2, CLOSED, 100), &Shared::default(), |_| ()).unwrap_err().to_string();
    assert!(refused.contains("max_prepared_stmt_count") && refused.contains("fewer tables"), "{refused}");
}
