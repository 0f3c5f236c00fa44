//! Tests of parts: rows in parts read like rows in memory, and a flush frees memory and log.

use std::sync::Arc;

use model::{SeriesId, SeriesKey, TimeRange, Timestamp, Value};
use store::conformance::{batch_of, collect, scan_all};
use store::{Durability, Maintenance, MemoryStore, Order, Reader, Scan, Store, Writer};
use store_local::{LocalStore, Options, RealDisk};

use crate::support::tiny;

fn fill(store: &dyn Store, series: SeriesId, times: std::ops::Range<i64>) {
    for ts in times {
        let text = Value::String(format!("value {}", ts % 7));
        let fields: Vec<(&str, Value)> = match ts % 4 {
            0 => vec![("a", Value::I64(ts)), ("b", Value::F64(ts as f64 / 3.0))],
            1 => vec![("a", text), ("c", Value::Bool(ts % 3 == 0))],
            2 => vec![("b", Value::Json("[1]".into()))],
            _ => vec![("a", Value::I64(-ts)), ("a", Value::F64(0.5))],
        };
        store.append(&batch_of(series, &[(ts * 3_600_000_000, &fields)]), Durability::Memory).unwrap();
    }
}

#[test]
fn scans_and_latest_are_the_same_before_and_after_a_flush_and_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memtable_flush_bytes: usize::MAX, memtable_bytes_max: usize::MAX, ..tiny() };
    let open = || LocalStore::open(Arc::new(RealDisk), dir.path(), options.clone()).unwrap();
    let reference = MemoryStore::new();
    let (mut store, _) = open();
    let names = ["d", "e", "f"];
    for round in 0..4 {
        for name in names {
            let key = SeriesKey::device("t", name).unwrap();
            for store in [&store as &dyn Store, &reference] {
                let series = store.series(&key).unwrap();
                // Rounds overlap, so that parts and memory have rows of the same times.
                fill(store, series, round * 30 - 50..round * 30 + 20);
            }
        }
        if round < 3 {
            store.flush().unwrap();
            assert_eq!(store.status().memtable_bytes, 0);
        }
        if round == 1 {
            store.close().unwrap();
            drop(store);
            let report;
            (store, report) = open();
            assert!(report.clean_shutdown && report.parts > 0 && report.rows == 0, "{report:?}");
        }
        for name in names {
            compare(&store, &reference, name);
        }
    }
}

fn compare(store: &LocalStore, reference: &MemoryStore, name: &str) {
    let key = SeriesKey::device("t", name).unwrap();
    let (ours, theirs) = (store.find_series(&key).unwrap(), reference.find_series(&key).unwrap());
    assert_eq!(store.latest(ours, None).unwrap(), reference.latest(theirs, None).unwrap());
    let hour = |hours: i64| Timestamp::from_micros(hours * 3_600_000_000);
    for range in [TimeRange::ALL, TimeRange::new(hour(-7), hour(30)), TimeRange::new(hour(3), hour(4))] {
        for (order, limit) in
            [(Order::Ascending, usize::MAX), (Order::Descending, usize::MAX), (Order::Descending, 5)]
        {
            for keys in [&["a"][..], &["c", "a", "b", "x"]] {
                let scan = Scan { range, order, limit, ..scan_all(ours, keys) };
                let expected = collect(reference, &Scan { series: theirs, ..scan.clone() }).unwrap();
                assert_eq!(collect(store, &scan).unwrap(), expected, "{name} {scan:?}");
            }
        }
    }
}

#[test]
fn a_flush_gives_back_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memtable_flush_bytes: usize::MAX, memtable_bytes_max: usize::MAX, ..tiny() };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    for round in 0..5 {
        for batch in 0..40 {
            fill(&store, series, round * 400 + batch * 10..round * 400 + batch * 10 + 10);
            store.flush().unwrap();
        }
        assert!(store.status().log_bytes <= 2 * 4096, "{:?}", store.status());
    }
    let segments = std::fs::read_dir(dir.path().join("log")).unwrap().count();
    assert!(segments <= 3, "{segments} files");
    // The store rewrites the manifest when it is twice as long as after the last rewrite, so it is not always short.
    let rewritten = (0..1_000).any(|_| {
        fill(&store, series, 1990..2000);
        store.flush().unwrap();
        let manifest = dir.path().join("manifest").metadata().unwrap().len();
        manifest < 40 * store.status().parts + 4096
    });
    assert!(rewritten, "{:?}", store.status());
    assert_eq!(collect(&store, &scan_all(series, &["a", "b"])).unwrap().len(), 2000);
}

/// Pages, row groups and dictionaries of the default sizes: many pages for one series, many series in one page.
#[test]
fn one_series_is_found_among_many_pages() {
    const SERIES: i64 = 300;
    const ROUNDS: i64 = 500;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { preallocate: false, row_group_rows: 50_000, ..Options::default() };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    let ids: Vec<SeriesId> = (0..SERIES)
        .map(|number| store.series(&SeriesKey::device("t", &format!("d{number}")).unwrap()).unwrap())
        .collect();
    let value = |series: i64, round: i64| match (series + round) % 3 {
        0 => Value::String(format!("text {series} {round}")),
        1 => Value::I64(series * round),
        _ => Value::F64(round as f64 / 4.0),
    };
    // Series 7 has as many rows as all others together.
    let times = |series: i64| if series == 7 { 0..ROUNDS * 100 } else { 0..ROUNDS };
    for series in 0..SERIES {
        for start in times(series).step_by(1_000) {
            let mut batch = model::Batch::new();
            let mut builder = batch.builder();
            for round in start..times(series).end.min(start + 1_000) {
                builder.field("v", value(series, round).as_ref());
                builder.row(ids[series as usize], Timestamp::from_micros(round * 1_000));
            }
            builder.finish();
            store.append(&batch, Durability::Memory).unwrap();
        }
    }
    store.flush().unwrap();
    for series in [0, 6, 7, 8, SERIES - 1] {
        for (order, from, to, limit) in [
            (Order::Ascending, 0, i64::MAX, usize::MAX),
            (Order::Descending, 99_500, 400_500, 250),
            (Order::Ascending, 300_000, 310_000, 99),
        ] {
            let range = TimeRange::new(Timestamp::from_micros(from), Timestamp::from_micros(to));
            let scan = Scan { range, order, limit, ..scan_all(ids[series as usize], &["v"]) };
            let mut expected: Vec<_> = times(series)
                .filter(|round| range.contains(Timestamp::from_micros(round * 1_000)))
                .map(|round| (round * 1_000, vec![Some(value(series, round))]))
                .collect();
            if order == Order::Descending {
                expected.reverse();
            }
            expected.truncate(limit);
            assert_eq!(collect(&store, &scan).unwrap(), expected, "{series} {order:?}");
        }
    }
}
