//! Statements that come again: what is kept of them must not show.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::{Access, Engine, Session};
use store::{Durability, MemoryStore, Store, TagMatcher, TagPredicate};

use crate::support::{NEW_YEAR_US, engine, many, rows, text};

/// Statements and whether the order of their rows is given.
const QUESTIONS: [(&str, bool); 9] = [
    (
        "SELECT device, time_bucket(INTERVAL '1 second', ts) AS t, avg(x), count(*) FROM lines GROUP BY device, t",
        false,
    ),
    (
        "SELECT time_bucket(INTERVAL '1 second', ts) AS t, sum(x) FROM lines WHERE device = 'd1' GROUP BY t ORDER BY t",
        true,
    ),
    ("SELECT device, last(x, ts), min(x) FROM lines WHERE line = 'M1' GROUP BY device", false),
    ("SELECT ts, device, x FROM lines WHERE line = 'M1' ORDER BY ts", true),
    ("SELECT ts, x FROM lines WHERE device = 'd1' ORDER BY ts DESC LIMIT 5", true),
    ("SELECT ts FROM lines WHERE line = 'M2' ORDER BY line, ts LIMIT 5", true),
    ("SELECT count(*), max(x) FROM lines", true),
    ("SELECT line, count(*) FROM lines WHERE x % 2 = 0 GROUP BY line ORDER BY line", true),
    ("SELECT x FROM lines WHERE line <> 'M2' ORDER BY x", true),
];

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Vehicles on two lines that report at a time of their own each.
struct Lines {
    store: Arc<MemoryStore>,
    dice: Dice,
    reports: i64,
    devices: u64,
}

impl Lines {
    fn report(&mut self, device: u64, rows: usize) {
        let key = [("device", format!("d{device}")), ("line", format!("M{}", 1 + device % 2))];
        let tags: Vec<_> = key.iter().map(|(tag, value)| (*tag, value.as_str())).collect();
        let series = self.store.series(&SeriesKey::new("lines", &tags).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for _ in 0..rows {
            self.reports += 1;
            builder.field("x", ValueRef::F64(self.dice.below(1_000) as f64));
            builder.row(series, Timestamp::from_micros(NEW_YEAR_US + self.reports * 500));
        }
        builder.finish();
        self.store.append(&batch, Durability::Memory).unwrap();
    }

    fn change(&mut self, step: usize) {
        let device = self.dice.below(self.devices);
        match self.dice.below(8) {
            0 | 1 => {
                self.devices += 1;
                self.report(self.devices, 10);
            }
            2 => self.report(device, 1_000),
            // So many are read by two threads.
            3 if step % 3 == 0 => self.report(device, 40_000),
            4 if step % 5 == 0 => {
                self.store.set_ttl("lines", Some(Duration::from_secs(60))).unwrap();
                let in_a_year = NEW_YEAR_US + 365 * 86_400_000_000;
                self.store.drop_expired(Timestamp::from_micros(in_a_year)).unwrap();
            }
            _ => self.report(device, 3),
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
async fn what_is_asked_again_is_answered_as_if_it_were_new() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(store.clone());
    let mut lines = Lines { store, dice: Dice(7), reports: 0, devices: 1 };
    lines.report(1, 10);
    let everybody = Session::new("admin");
    let on_line = |line: &'static str| {
        Session::new(line).with_access(move |_| {
            let predicate = TagPredicate::Is(line.to_owned());
            Access::Series(vec![TagMatcher { tag: "line".into(), predicate }])
        })
    };
    let sessions = [everybody.clone(), on_line("M1"), on_line("M2"), everybody];
    let mut answers = BTreeSet::new();
    for step in 0..40 {
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
    assert!(answers.len() > 300, "{}", answers.len());
}

#[tokio::test]
async fn many_ask_the_same_at_once() {
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
