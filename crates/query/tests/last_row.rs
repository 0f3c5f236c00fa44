//! Aggregations that need the last or the first row of each series only.

use std::sync::Arc;

use model::limits::QUERY_END_FIELDS_MAX;
use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::Engine;
use store::{Durability, MemoryStore, Store, Writer};

use crate::support::{NEW_YEAR_US, engine, plan, rows};

const STEP_US: i64 = 10_000_000;
const ROWS: i64 = 3_000;

/// Writes rows of one vehicle from one step to another.
fn report(store: &dyn Store, number: i64, steps: std::ops::Range<i64>) {
    let device = format!("d{number}");
    let tags = [("device", device.as_str()), ("line", ["M1", "M2"][number as usize % 2])];
    // The last vehicles are on no line.
    let key = SeriesKey::new("lines", &tags[..if number < 6 { 2 } else { 1 }]).unwrap();
    let id = store.series(&key).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for step in steps {
        // Vehicle 4 has lost its sensor, vehicle 5 never had one.
        if step % 7 != 0 && (number != 4 || step < 1_000) && number != 5 {
            builder.field("x", ValueRef::F64((step * step % 1_000 + number) as f64));
        }
        if step % 30 == 0 {
            builder.field("word", ValueRef::String(["a", "bc", ""][(step / 30 % 3) as usize]));
        }
        builder.field("n", ValueRef::I64(step % 11));
        // Vehicles report at different moments, so that no two rows are equally new.
        builder.row(id, Timestamp::from_micros(NEW_YEAR_US + step * STEP_US + number));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
}

/// Vehicles that report all the time, late, or not any more. `pause` is called now and then.
fn fill(store: &dyn Store, pause: &dyn Fn()) {
    for part in 0..3 {
        for number in [0, 1, 4, 5, 6, 7] {
            report(store, number, part * ROWS / 3..(part + 1) * ROWS / 3);
        }
        match part {
            0 => report(store, 2, 0..20),
            1 => report(store, 3, 0..ROWS / 2),
            _ => report(store, 8, ROWS - 2..ROWS),
        }
        pause();
    }
    report(store, 0, 0..40);
    report(store, 3, ROWS - 30..ROWS - 9);
}

/// Compares an answer with that of a statement that also counts, and so reads all rows.
async fn compare(engine: &Engine, what: &str, rest: &str, expected: Option<&str>) {
    let sql = format!("SELECT {what} FROM lines {rest} ORDER BY 1");
    let plan_of_last_rows = plan(engine, &sql).await;
    match expected {
        Some(end) => {
            assert!(plan_of_last_rows.contains(&format!("only={end}")), "{sql}: {plan_of_last_rows}")
        }
        None => assert!(!plan_of_last_rows.contains("only="), "{sql}: {plan_of_last_rows}"),
    }
    let counted = format!("SELECT {what}, count(*) FROM lines {rest} ORDER BY 1");
    assert!(!plan(engine, &counted).await.contains("only="), "{counted}");
    let mut all = rows(engine, &counted).await;
    all.iter_mut().for_each(|row| row.truncate(row.rfind(' ').unwrap()));
    assert!(!all.is_empty(), "{sql}");
    // The second run caches the operators, the third one uses them again.
    for time in 1..=3 {
        assert_eq!(rows(engine, &sql).await, all, "{time}: {sql}");
    }
}

const BY_DEVICE: &str = "GROUP BY device";

async fn compare_all(engine: &Engine) {
    for (what, rest) in [
        ("device, last(x, ts)", BY_DEVICE),
        ("device, last(x, ts), last(word, ts), max(ts), last(n, ts)", BY_DEVICE),
        ("upper(line), last(x, ts), last(device, ts)", "GROUP BY upper(line)"),
        (
            "device, line, last_value(x ORDER BY ts), first_value(x + 1 ORDER BY ts DESC)",
            "GROUP BY device, line",
        ),
        ("device, last(x, ts)", "WHERE x IS NOT NULL AND ts >= '2026-01-01T00:10:00Z' GROUP BY device"),
        (
            "device, last(x, ts)",
            "WHERE ts < '2026-01-01T02:30:00Z' AND upper(device) <> 'D1' GROUP BY device",
        ),
        ("line, max(ts)", "WHERE word IS NOT NULL AND device <> 'd8' GROUP BY line"),
        ("device, last(x, ts), last(x, ts) + 1", "WHERE x IS NOT NULL AND device LIKE 'd%' GROUP BY device"),
        ("device, last(x, ts)", "GROUP BY device HAVING last(x, ts) > 100"),
        ("last(x, ts), max(ts)", ""),
        ("last(word, ts)", "WHERE device = 'd2'"),
        ("device", BY_DEVICE),
        ("line", "WHERE x IS NOT NULL GROUP BY line"),
    ] {
        compare(engine, what, rest, Some("newest")).await;
    }
    for (what, rest) in [
        ("device, first(x, ts), min(ts)", BY_DEVICE),
        ("line, first_value(word ORDER BY ts), last_value(n ORDER BY ts DESC)", "GROUP BY line"),
        ("first(x, ts)", "WHERE ts > '2026-01-01T03:00:00Z'"),
    ] {
        compare(engine, what, rest, Some("oldest")).await;
    }
    for (what, rest) in [
        ("device, last(x, ts), first(x, ts)", BY_DEVICE),
        ("device, last(nullif(x, 5), ts)", BY_DEVICE),
        ("device, last(x, ts) FILTER (WHERE n > 5)", BY_DEVICE),
        ("device, max(x)", BY_DEVICE),
        ("device, last(x, n)", BY_DEVICE),
        ("device, last(x, ts)", "WHERE x > 500 GROUP BY device"),
        // The newest row with a number may have no word.
        ("device, last(word, ts), last(x, ts)", "WHERE x IS NOT NULL GROUP BY device"),
        ("device, max(ts)", "WHERE x IS NOT NULL AND word IS NOT NULL GROUP BY device"),
        ("device, last(x, ts)", "WHERE ts < '2026-01-01T00:01:00Z' GROUP BY device"),
        ("device, last(x, ts)", "WHERE random() < 2 GROUP BY device"),
        ("date_bin(INTERVAL '1 hour', ts), last(x, ts)", "GROUP BY 1"),
        ("n, last(x, ts)", "GROUP BY n"),
    ] {
        compare(engine, what, rest, None).await;
    }
}

#[tokio::test]
async fn rows_behind_an_end_change_nothing() {
    let store = Arc::new(MemoryStore::new());
    fill(&*store, &|| ());
    compare_all(&engine(store)).await;
}

#[tokio::test]
async fn last_rows_are_found_in_parts_and_in_memory() {
    let store = testkit::parts::store_without_merges();
    fill(&*store, &|| store.flush().unwrap());
    compare_all(&engine(store)).await;
}

#[tokio::test]
async fn a_limit_below_leaves_the_rows_as_they_are() {
    let store = Arc::new(MemoryStore::new());
    fill(&*store, &|| ());
    let sql = "SELECT last(x, ts) FROM (SELECT * FROM lines LIMIT 5)";
    assert!(!plan(&engine(store), sql).await.contains("only="));
}

#[tokio::test]
async fn very_many_fields_are_read_as_they_are() {
    let store = Arc::new(MemoryStore::new());
    let id = store.series(&SeriesKey::device("wide", "d").unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for row in 0..1_000 {
        for field in 0..=QUERY_END_FIELDS_MAX {
            builder.field(&format!("f{field}"), ValueRef::I64(row));
        }
        builder.row(id, Timestamp::from_micros(NEW_YEAR_US + row));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
    let engine = engine(store);
    for (fields, is_end) in [(QUERY_END_FIELDS_MAX, true), (QUERY_END_FIELDS_MAX + 1, false)] {
        let last: Vec<String> = (0..fields).map(|field| format!("last(f{field}, ts)")).collect();
        let sql = format!("SELECT {} FROM wide", last.join(", "));
        assert_eq!(plan(&engine, &sql).await.contains("only=newest"), is_end, "{fields}");
        assert_eq!(rows(&engine, &sql).await, [vec!["999"; fields].join(" ")]);
    }
}
