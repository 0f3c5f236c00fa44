//! Rows in parts read like rows in memory, and take memory's and the log's place.

use std::sync::Arc;

use model::{SeriesId, SeriesKey, TimeRange, Timestamp, Value};
use store::conformance::{batch_of, collect, scan_all};
use store::{Durability, MemoryStore, Order, Scan, Store};
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
    let manifest = dir.path().join("manifest").metadata().unwrap().len();
    assert_eq!(collect(&store, &scan_all(series, &["a", "b"])).unwrap().len(), 2000);
    assert!(manifest < 40 * store.status().parts + 4096, "the manifest was rewritten: {manifest} bytes");
}
