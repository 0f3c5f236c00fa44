//! Tests of tables with one number: they share parts, and behave as if each had parts of its own.

use std::ops::ControlFlow;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TimeRange, Timestamp, Value, ValueRef};
use store::conformance::{batch_of, collect_table, read_all};
use store::{Durability, MemoryStore, Order, ReadOrder, SeriesSet, Store, TableRead};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{LocalStore, Options};
use testkit::FaultyDisk;

use crate::support::{drop_at, eventually, files, keep, numbers, open, tiny, tiny_leaping, tiny_manual};

const DAY_US: i64 = 86_400_000_000;
const DAY: Duration = Duration::from_secs(86_400);

fn series(store: &dyn Store, table: &str, device: &str) -> SeriesId {
    store.series(&SeriesKey::device(table, device).unwrap()).unwrap()
}

fn number(n: i64) -> Value {
    Value::F64(n as f64)
}

/// Appends a row at noon of a day to each table, and flushes.
fn fill(store: &LocalStore, tables: &[&str], days: std::ops::Range<i64>) {
    for day in days {
        for table in tables {
            keep(store, series(store, table, "d"), day * DAY_US + DAY_US / 2, number(day)).unwrap();
        }
        store.flush().unwrap();
    }
}

fn days(store: &LocalStore, table: &str) -> Vec<i64> {
    numbers(store, series(store, table, "d")).unwrap().into_iter().map(|(_, day)| day).collect()
}

/// More tables than a page has rows, interleaved series, repeated writes, merges.
#[test]
fn every_table_reads_as_the_reference_has_it() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny()).unwrap();
    let reference = MemoryStore::new();
    let tables: Vec<String> = (0..23).map(|table| format!("metric.{table}")).collect();
    for round in 0..40_i64 {
        for (nth, table) in tables.iter().enumerate() {
            // Some tables have many series, some one, and some are late.
            let devices = [1, 7, 2][nth % 3].min(round + 1);
            for device in 0..devices {
                let ts = (round * 7 + device) % 31 + (round % 3) * DAY_US;
                for store in [&store as &dyn Store, &reference] {
                    let series = series(store, table, &format!("d{device}"));
                    let n = number(round * 100 + device);
                    store.append(&batch_of(series, &[(ts, &[("value", n)])]), Durability::Memory).unwrap();
                }
            }
        }
        if round % 5 == 4 {
            store.flush().unwrap();
            tables.iter().for_each(|table| compare(&store, &reference, table));
        }
        if round % 15 == 14 {
            store.compact().unwrap();
            tables.iter().for_each(|table| compare(&store, &reference, table));
        }
    }
}

fn compare(store: &LocalStore, reference: &MemoryStore, table: &str) {
    let rows = |store: &dyn Store, change: &dyn Fn(&mut TableRead)| {
        let snapshot = store.snapshot(&conformance::table(table)).unwrap().unwrap();
        let mut read = read_all(snapshot.as_ref());
        change(&mut read);
        let mut rows: Vec<String> = collect_table(snapshot.as_ref(), &read)
            .unwrap()
            .concat()
            .iter()
            .map(|row| format!("{row:?}"))
            .collect();
        rows.sort();
        rows
    };
    let range = TimeRange::new(Timestamp::from_micros(5), Timestamp::from_micros(DAY_US + 20));
    let reads: [&dyn Fn(&mut TableRead); 6] = [
        &|_| {},
        &|read| (read.order, read.readers_max, read.batch_rows) = (ReadOrder::Any, 3, 5),
        &|read| (read.order, read.batch_rows) = (ReadOrder::Time(Order::Descending), 3),
        &|read| read.range = range,
        &|read| read.columns.clear(),
        // Numbers of series of all tables, as somebody may give them.
        &|read| read.series = Some(SeriesSet::from_iter(0..10_000)),
    ];
    for (nth, change) in reads.into_iter().enumerate() {
        assert_eq!(rows(store, change), rows(reference, change), "{table}, read {nth}");
    }
}

#[test]
fn tables_that_share_a_part_are_counted_apart() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    for (table, rows) in [("a", 12), ("b", 1), ("c", 20)] {
        let series = series(&store, table, "d");
        (0..rows).for_each(|ts| assert!(keep(&store, series, ts, number(ts)).is_some()));
    }
    let text = batch_of(series(&store, "wide", "d"), &[(1, &[("s", Value::String("abc".into()))])]);
    store.append(&text, Durability::Memory).unwrap();
    store.flush().unwrap();
    assert_eq!(files(&disk, ".parquet").len(), 2, "three tables in one part");
    let counted = |store: &LocalStore| -> Vec<_> {
        let tables = store.tables().unwrap().into_iter();
        tables.map(|table| (table.table, table.rows, table.points, table.raw_bytes)).collect()
    };
    let expected = [
        (conformance::table("a"), 12, Some(12), Some(12 * 16)),
        (conformance::table("b"), 1, Some(1), Some(16)),
        (conformance::table("c"), 20, Some(20), Some(20 * 16)),
        (conformance::table("wide"), 1, Some(1), Some(8 + 3)),
    ];
    assert_eq!(counted(&store), expected);
    let check = store.check(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(!check.is_damaged() && check.parts == 2 && check.part_rows == 34, "{check:?}");
    let saved = store.files().unwrap();
    assert_eq!(saved.files().iter().filter(|file| file.name.ends_with(".parquet")).count(), 2);
    let bytes: u64 = store.tables().unwrap().iter().map(|table| table.bytes).sum();
    assert!((store.status().part_bytes..store.status().part_bytes + 4).contains(&bytes), "{bytes}");
    store.close().unwrap();
    drop(store);
    assert_eq!(counted(&open(&disk, tiny_manual()).unwrap().0), expected);
}

#[test]
fn a_table_with_a_time_of_its_own_has_parts_of_its_own() {
    let disk = FaultyDisk::new();
    let options = Options { ttl_default: Some(5 * DAY), ..tiny_leaping() };
    let (store, _) = open(&disk, options).unwrap();
    store.set_ttl(&conformance::table("short"), Some(2 * DAY)).unwrap();
    store.set_ttl(&conformance::table("for good"), None).unwrap();
    // The series numbers of other tables are around those of these two.
    fill(&store, &["a", "short", "for good", "b"], 0..10);
    assert_eq!(files(&disk, ".parquet").len(), 3 * 10);
    assert_eq!(drop_at(&store, 10), 8 + 2 * 5);
    assert_eq!(days(&store, "short"), [8, 9]);
    assert_eq!(days(&store, "for good"), (0..10).collect::<Vec<_>>());
    for table in ["a", "b"] {
        assert_eq!(days(&store, table), [5, 6, 7, 8, 9]);
    }
}

/// A shorter time to live does not drop older rows in shared parts; a longer one keeps the rows of all tables in them.
#[test]
fn no_row_goes_with_a_part_before_its_own_time() {
    let disk = FaultyDisk::new();
    let options = Options { ttl_default: Some(2 * DAY), ..tiny_leaping() };
    let (store, _) = open(&disk, options).unwrap();
    fill(&store, &["a", "long", "b"], 0..3);
    // Merged parts have their tables too.
    store.compact().unwrap();
    store.set_ttl(&conformance::table("long"), Some(10 * DAY)).unwrap();
    fill(&store, &["a", "b"], 3..6);
    assert_eq!(drop_at(&store, 10), 3 * 2, "only what `long` has no share in");
    for table in ["a", "long", "b"] {
        assert_eq!(days(&store, table), [0, 1, 2]);
    }
    assert_eq!(drop_at(&store, 13), 3 * 3);
    assert_eq!(days(&store, "long"), Vec::<i64>::new());
}

/// Wide parts are newer than narrow ones, so a table with wide parts gets no narrow ones.
#[test]
fn a_table_that_had_parts_of_its_own_keeps_them() {
    let disk = FaultyDisk::new();
    let apart = Options { narrow_parts: false, ..tiny_manual() };
    for (round, options) in [apart.clone(), tiny_manual(), apart, tiny_manual()].into_iter().enumerate() {
        let (store, _) = open(&disk, options).unwrap();
        for table in ["old", "new"] {
            if (round, table) != (0, "new") {
                keep(&store, series(&store, table, "d"), 5, number(round as i64)).unwrap();
            }
        }
        store.flush().unwrap();
        assert_eq!(numbers(&store, series(&store, "old", "d")).unwrap(), [(5, round as i64)]);
        if round > 0 {
            assert_eq!(numbers(&store, series(&store, "new", "d")).unwrap(), [(5, round as i64)]);
        }
        store.close().unwrap();
    }
}

/// Pages and row groups of the default size: a page has many tables, and a table has many pages.
#[test]
fn parts_of_their_real_size_give_every_row_of_every_table() {
    let disk = FaultyDisk::new();
    let options = Options { preallocate: false, compact: false, ..Options::default() };
    let (store, _) = open(&disk, options).unwrap();
    // Tables with few and with many series, whose numbers are interleaved.
    let series_of = |table: i64| if table % 10 == 0 { 200 } else { 1 + table % 3 };
    let mut all: Vec<(i64, i64, SeriesId)> = Vec::new();
    for device in 0..200 {
        for table in (0..40).filter(|table| device < series_of(*table)) {
            all.push((table, device, series(&store, &format!("metric.{table}"), &format!("d{device}"))));
        }
    }
    let value = |table: i64, device: i64, ts: i64| (table * 1_000_000 + device * 1_000 + ts) as f64 / 4.0;
    // The second part repeats some rows of the first one with the same values.
    for times in [0..150, 100..250] {
        for ts in times {
            let mut batch = Batch::new();
            for (table, device, series) in &all {
                let mut builder = batch.builder();
                builder.field("value", ValueRef::F64(value(*table, *device, ts)));
                builder.row(*series, Timestamp::from_micros(ts * 1_000));
                builder.finish();
            }
            eventually(|| store.append(&batch, Durability::Memory).ok());
        }
        store.flush().unwrap();
    }
    assert_eq!(files(&disk, ".parquet").len(), 2);
    for table in 0..40 {
        let expected: f64 = (0..series_of(table))
            .flat_map(|device| (0..250).map(move |ts| (device, ts)))
            .map(|(device, ts)| value(table, device, ts))
            .sum();
        let snapshot = store.snapshot(&conformance::table(&format!("metric.{table}"))).unwrap().unwrap();
        for (order, readers_max) in [(ReadOrder::Any, 1), (ReadOrder::Any, 3), (ReadOrder::SeriesThenTime, 1)]
        {
            let read = TableRead { columns: vec![2], order, readers_max, ..read_all(snapshot.as_ref()) };
            let rows = collect_table(snapshot.as_ref(), &read).unwrap().concat();
            let sum: f64 = rows
                .iter()
                .map(|row| match row[0] {
                    Some(Value::F64(value)) => value,
                    _ => panic!("{table}: a row without its value"),
                })
                .sum();
            assert_eq!((rows.len() as i64, sum), (250 * series_of(table), expected), "{table} {order:?}");
        }
    }
}
