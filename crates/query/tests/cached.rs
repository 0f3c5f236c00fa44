//! Statements that run again: cached plans and operators must not change the answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::{Access, Engine, Session};
use store::{Durability, MemoryStore, TagMatcher, TagPredicate};
use store::{Maintenance, Writer, conformance};

use crate::support::{NEW_YEAR_US, engine, many, probe, put, rows, text};

/// Statements, and whether the order of their rows is determined.
const QUESTIONS: [(&str, bool); 10] = [
    (
        "SELECT device, time_bucket(INTERVAL '1 second', ts) AS t, avg(x), count(*) FROM lines GROUP BY device, t",
        false,
    ),
    (
        "SELECT time_bucket(INTERVAL '1 second', ts) AS t, sum(x) FROM lines WHERE device = 'd99' GROUP BY t ORDER BY t",
        true,
    ),
    ("SELECT device, last(x, ts), min(x) FROM lines WHERE line = 'M1' GROUP BY device", false),
    (
        "SELECT ts, device, x FROM lines WHERE line = 'M1' AND ts < '2026-01-01T00:00:02Z' ORDER BY ts, device",
        true,
    ),
    ("SELECT ts, x FROM lines WHERE device = 'd99' ORDER BY ts DESC LIMIT 5", true),
    ("SELECT ts FROM lines WHERE line = 'M2' ORDER BY line, ts LIMIT 5", true),
    ("SELECT line, ts FROM lines WHERE ts < '2026-01-01T00:00:02Z' ORDER BY line, ts", true),
    ("SELECT count(*), max(x) FROM lines", true),
    ("SELECT line, count(*) FROM lines WHERE x % 2 = 0 GROUP BY line ORDER BY line", true),
    ("SELECT x FROM lines WHERE line <> 'M2' AND ts < '2026-01-01T00:00:02Z' ORDER BY x", true),
];

/// Pseudo-random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Vehicles on two lines. The newest vehicle has the first name.
struct Lines {
    store: Arc<MemoryStore>,
    dice: Dice,
    moments: i64,
    devices: u64,
}

impl Lines {
    /// One report for each moment.
    fn report(&self, device: u64, moments: std::ops::Range<i64>) {
        let key = [("device", format!("d{}", 100 - device)), ("line", format!("M{}", 2 - device % 2))];
        let tags: Vec<_> = key.iter().map(|(tag, value)| (*tag, value.as_str())).collect();
        let series = self.store.series(&SeriesKey::new("lines", &tags).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for moment in moments {
            builder.field("x", ValueRef::F64((moment * 7_919 % 1_000) as f64));
            builder.row(series, Timestamp::from_micros(NEW_YEAR_US + moment * 1_000));
        }
        builder.finish();
        self.store.append(&batch, Durability::Memory).unwrap();
    }

    fn go_on(&mut self, device: u64, moments: i64) {
        self.report(device, self.moments..self.moments + moments);
        self.moments += moments;
    }

    fn change(&mut self, step: usize) {
        let device = 1 + self.dice.below(self.devices);
        match (step, self.dice.below(6)) {
            // Two threads read this number of rows.
            (3 | 4, _) => self.go_on(device, 35_000),
            (5, _) => {
                self.store.set_ttl(&conformance::table("lines"), Some(Duration::from_secs(60))).unwrap();
                let in_a_year = NEW_YEAR_US + 365 * 86_400_000_000;
                self.store.drop_expired(Timestamp::from_micros(in_a_year)).unwrap();
            }
            // One more vehicle, with reports at the same moments as another one.
            (_, 0..3) => {
                self.devices += 1;
                self.report(self.devices, self.moments - 10..self.moments);
            }
            (_, 3) => self.go_on(device, 1_000),
            _ => self.go_on(device, 3),
        }
    }
}

async fn ask(engine: &Engine, session: &Session, sql: &str, is_ordered: bool) -> Vec<Vec<String>> {
    let answer = engine.run(sql, session).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = text(&answer.collect().await.unwrap());
    if !is_ordered {
        rows.sort();
    }
    rows
}

#[tokio::test]
async fn repeated_statements_answer_like_new_ones() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(store.clone());
    let mut lines = Lines { store, dice: Dice(7), moments: 0, devices: 1 };
    lines.go_on(1, 10);
    let everybody = Session::new("admin");
    let on_line = |line: &'static str| {
        Session::new(line).with_access(move |_| {
            let predicate = TagPredicate::Is(line.to_owned());
            Access::Series(vec![TagMatcher { tag: "line".into(), predicate }])
        })
    };
    let sessions = [on_line("M1"), everybody, on_line("M2")];
    let mut answers = BTreeSet::new();
    for step in 0..10 {
        lines.change(step);
        for (sql, is_ordered) in QUESTIONS {
            for session in &sessions {
                let again = ask(&engine, session, sql, is_ordered).await;
                let new = ask(&engine, session, &format!("{sql} -- {step}"), is_ordered).await;
                assert!(
                    again == new,
                    "step {step}: {sql}\n{again:?}\nfor {}, and not\n{new:?}",
                    session.user()
                );
                answers.insert(again);
            }
        }
    }
    assert!(answers.len() > 60, "{}", answers.len());
}

#[tokio::test]
async fn concurrent_runs_of_a_statement_agree() {
    let engine = engine(many(3, 30_000));
    let sql =
        "SELECT device, count(*), sum(value), last(value, ts) FROM many GROUP BY device ORDER BY device";
    let expected = rows(&engine, sql).await;
    assert_eq!(expected.len(), 3);
    let asking: Vec<_> = (0..16)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { rows(&engine, sql).await })
        })
        .collect();
    for answer in asking {
        assert_eq!(answer.await.unwrap(), expected);
    }
}

/// The first float of a key arrives when plans and operators for a column of integers are cached.
#[tokio::test]
async fn plans_cached_for_integers_are_not_used_for_floats() {
    let store = probe();
    let engine = engine(store.clone());
    let before = [
        ("SELECT avg(odo), count(odo), max(odo) FROM telemetry", "15.0 2 20"),
        ("SELECT device, last(odo, ts) FROM telemetry GROUP BY device", "probe 20"),
        ("SELECT odo FROM telemetry WHERE odo > 15 ORDER BY odo", "20"),
        ("SELECT odo FROM telemetry WHERE device = 'probe' AND odo IS NOT NULL ORDER BY ts LIMIT 1", "10"),
    ];
    for (sql, expected) in before {
        for _ in 0..3 {
            assert_eq!(rows(&engine, sql).await, [expected], "{sql}");
        }
    }
    put(&*store, "telemetry", &[("device", "probe")], 9, &[("odo", ValueRef::F64(12.0))]);
    let after = [["14.0 3 20.0"], ["probe 12.0"], ["20.0"], ["10.0"]];
    for ((sql, _), expected) in before.iter().zip(after) {
        for _ in 0..3 {
            assert_eq!(rows(&engine, sql).await, expected, "{sql}");
        }
    }
}
