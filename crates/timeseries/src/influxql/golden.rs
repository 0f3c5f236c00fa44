//! Compares answers with those of InfluxDB 1.6.7 to the same queries over the same points (`golden/points.txt`).
//!
//! A case is `> query` and the answer: a line `name tags: columns` for each head, an indented line for each row, and `! message`
//! for an error, without the words `error parsing query: ` that a server puts before some.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Batch, Namespace, SeriesKey, Timestamp, ValueRef};
use store::{Durability, MemoryStore, Writer};

use super::ast::Statement;
use super::{Context, Error, Head, Limits, Value, parse, select, show};
use crate::{Access, SourceError, StoreSource, Supervisor};

const CONTEXT: Context = Context {
    now: 1_700_000_000_000_000_000,
    limits: Limits { points: 1_000_000, buckets: 100_000, series: 10_000 },
};

/// A store with the points of a text, each a line of measurement and tags, fields, and time in nanoseconds.
fn source(points: &str) -> StoreSource {
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    for line in points.lines() {
        let [key, fields, time] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (name, tags) = key.split_once(',').unwrap();
        let tags: Vec<(&str, &str)> = tags.split(',').map(|tag| tag.split_once('=').unwrap()).collect();
        let series = store.series(&SeriesKey::new(name, &tags).unwrap()).unwrap();
        let mut row = batch.builder();
        for (key, value) in fields.split(',').map(|field| field.split_once('=').unwrap()) {
            row.field(key, field_value(value));
        }
        row.row(series, Timestamp::from_micros(time.parse::<i64>().unwrap() / 1_000));
        row.finish();
    }
    store.append(&batch, Durability::Memory).unwrap();
    StoreSource::new(Arc::new(store), Namespace::DEFAULT, Arc::new(|_| Access::Everything))
}

fn field_value(text: &str) -> ValueRef<'_> {
    if let Some(text) = text.strip_prefix('"') {
        return ValueRef::String(text.trim_end_matches('"'));
    }
    match text.strip_suffix('i') {
        Some(number) => ValueRef::I64(number.parse().unwrap()),
        None => text.parse().map(ValueRef::Bool).unwrap_or_else(|_| ValueRef::F64(text.parse().unwrap())),
    }
}

fn answer(query: &str, source: &StoreSource) -> String {
    let statements = match parse(query, &HashMap::new()) {
        Ok(statements) => statements,
        Err(message) => return format!("! {message}\n"),
    };
    let mut out = String::new();
    for statement in &statements {
        let mut last: Option<Head> = None;
        let mut visit = |head: &Head, row: Vec<Value>| {
            if last.as_ref() != Some(head) {
                out.push_str(&shown_head(head));
                last = Some(head.clone());
            }
            let row: Vec<String> = row.iter().map(shown).collect();
            out.push_str(&format!("  {}\n", row.join(" ")));
            ControlFlow::Continue(())
        };
        let result = match statement {
            Statement::Select(statement) => select(statement, source, &CONTEXT, &mut visit),
            Statement::Show(statement) => show(statement, source, &CONTEXT, &mut visit),
            other => panic!("{other:?} reads no table"),
        };
        match result {
            Ok(()) => {}
            Err(Error::Statement(message)) => out.push_str(&format!("! {message}\n")),
            Err(error) => panic!("{query}: {error}"),
        }
    }
    out
}

fn shown_head(head: &Head) -> String {
    let tags: Vec<String> = head.tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    let title = format!("{} {}", head.name, tags.join(","));
    format!("{}: {}\n", title.trim(), head.columns.join(" "))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Num(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => text.to_string(),
    }
}

fn compare(cases: &str) {
    let source = source(include_str!("golden/points.txt"));
    let mut wrong = String::new();
    for case in cases.split("\n\n") {
        let (query, expected) = case.strip_prefix("> ").unwrap().split_once('\n').unwrap_or((&case[2..], ""));
        let found = answer(query, &source);
        if found.trim_end() != expected.trim_end() {
            wrong.push_str(&format!("> {query}\nexpected\n{expected}\nfound\n{found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn rows_are_those_of_influxdb() {
    compare(include_str!("golden/rows.txt"));
}

#[test]
fn functions_give_what_those_of_influxdb_give() {
    compare(include_str!("golden/functions.txt"));
}

#[test]
fn buckets_transformations_and_subqueries_give_what_those_of_influxdb_give() {
    compare(include_str!("golden/buckets.txt"));
}

#[test]
fn show_lists_what_influxdb_lists() {
    compare(include_str!("golden/show.txt"));
}

#[test]
fn errors_are_in_the_words_of_influxdb() {
    compare(include_str!("golden/errors.txt"));
}

/// Ends a query after a number of checks.
struct Allows(AtomicUsize);

impl Supervisor for Allows {
    fn check(&self) -> Result<(), String> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| "enough".to_owned())
    }

    fn during_read(&self, read: &mut dyn FnMut()) {
        read();
    }
}

#[test]
fn a_query_that_is_stopped_says_so_whenever_that_is() {
    // A source asks when it opens a table or selects series, and before each batch; the language asks while it holds rows.
    for (query, checks_min) in [
        ("select usage from cpu", 4),
        ("select usage from cpu group by host", 6),
        ("select mean(usage) from cpu group by host", 6),
        ("select median(usage) from cpu where time >= 0 and time < 1m group by time(10s)", 10),
        (
            "select max(mean) from (select mean(usage) from cpu where time >= 0 and time < 1m group by time(10s), host)",
            8,
        ),
        ("show tag values with key = host", 4),
        ("show series cardinality", 4),
    ] {
        let run = |checks: usize| {
            let source = source(include_str!("golden/points.txt"))
                .supervised_by(Arc::new(Allows(AtomicUsize::new(checks))));
            let mut ignore = |_: &Head, _: Vec<Value>| ControlFlow::Continue(());
            match &parse(query, &HashMap::new()).unwrap()[0] {
                Statement::Select(statement) => select(statement, &source, &CONTEXT, &mut ignore),
                Statement::Show(statement) => show(statement, &source, &CONTEXT, &mut ignore),
                other => panic!("{other:?} reads no table"),
            }
        };
        let mut checks = 0;
        while let Err(error) = run(checks) {
            assert!(matches!(error, Error::Source(SourceError::Stopped(_))), "{query}: {error}");
            checks += 1;
        }
        assert!(checks >= checks_min, "{query} asks only {checks} times");
    }
}

#[test]
fn empty_buckets_are_bounded_where_a_range_has_no_begin() {
    let source = source(include_str!("golden/points.txt"));
    let limited = "cpu: time mean\n  0 5.5\n  10000000000 16.5\n";
    for (query, expected) in [
        (
            "select mean(usage) from cpu group by time(10s)",
            "! max-select-buckets limit exceeded: (100001/100000)\n",
        ),
        (
            "select mean(usage) from cpu group by time(10s) order by time desc",
            "! max-select-buckets limit exceeded: (100001/100000)\n",
        ),
        ("select mean(usage) from cpu group by time(10s) limit 2", limited),
    ] {
        assert_eq!(answer(query, &source), expected, "{query}");
    }
}

#[test]
fn only_the_rows_that_a_limit_reaches_are_held() {
    let lines: String = (0..5_000)
        .map(|second| format!("cpu,host={} usage={second} {second}000000000\n", ["a", "b"][second % 2]))
        .collect();
    let source = source(&lines);
    let last = |limits: Limits| {
        let query = "select usage from cpu group by host order by time desc limit 2 offset 1";
        let Statement::Select(statement) = parse(query, &HashMap::new()).unwrap().remove(0) else {
            panic!("{query}")
        };
        let mut rows = Vec::new();
        let mut visit = |head: &Head, row: Vec<Value>| {
            rows.push(format!("{} {}", head.tags[0].1, shown(&row[1])));
            ControlFlow::Continue(())
        };
        select(&statement, &source, &Context { limits, ..CONTEXT }, &mut visit).map(|()| rows)
    };
    let few = Limits { points: 2_100, ..CONTEXT.limits };
    assert_eq!(last(few).unwrap(), ["b 4997", "b 4995", "a 4996", "a 4994"]);
    assert!(last(Limits { points: 900, ..few }).is_err());
}
