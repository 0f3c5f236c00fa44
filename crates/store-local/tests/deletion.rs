//! Keys that are dropped: what readers, files and limits know of them afterwards.

use model::{SeriesKey, Value};
use store::conformance::{batch_of, collect, scan_all};
use store::{Durability, StoreError};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{LocalStore, Options};
use testkit::FaultyDisk;

use crate::support::{files, open, reached, tiny_manual};

fn put(store: &LocalStore, ts: i64, fields: &[(&str, Value)]) {
    let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    let sequence = store.append(&batch_of(series, &[(ts, fields)]), Durability::Fsync).unwrap();
    assert!(reached(store, Durability::Fsync, sequence));
}

fn found(store: &LocalStore, key: &str) -> Vec<(i64, Value)> {
    let series = store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    let rows = collect(store, &scan_all(series, &[key])).unwrap();
    rows.into_iter().map(|(ts, values)| (ts, values[0].clone().unwrap())).collect()
}

/// Whether some part names a column so.
fn in_parts(disk: &FaultyDisk, column: &str) -> bool {
    let has = |path| disk.content(path).windows(column.len()).any(|bytes| bytes == column.as_bytes());
    files(disk, ".parquet").iter().any(|path| has(path))
}

#[test]
fn flushes_and_merges_leave_the_values_out_and_the_next_process_knows() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let secret = || ("secret", Value::String("of the past".into()));
    for ts in 0..4 {
        put(&store, ts, &[("n", Value::I64(ts)), secret()]);
        store.flush().unwrap();
    }
    put(&store, 5, &[secret()]);
    assert!(store.drop_key(&conformance::table("t"), "secret").unwrap());
    put(&store, 6, &[("n", Value::I64(6)), ("secret", Value::F64(0.5))]);
    store.flush().unwrap();
    let check = |store: &LocalStore| {
        assert_eq!(found(store, "secret"), [(6, Value::F64(0.5))]);
        assert_eq!(found(store, "n").len(), 5);
        assert!(
            store
                .latest(store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap(), None)
                .unwrap()
                .iter()
                .all(|latest| latest.value != secret().1)
        );
    };
    check(&store);
    assert!(in_parts(&disk, "of the past"));
    store.compact().unwrap();
    check(&store);
    store.close().unwrap();
    drop(store);
    let (store, report) = open(&disk, tiny_manual()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    check(&store);
    assert!(!in_parts(&disk, "of the past"), "the merge has left it out");
    assert!(store.check(&mut |_, _| std::ops::ControlFlow::Continue(())).unwrap().findings.is_empty());
}

#[test]
fn values_in_memory_are_dropped_too_and_come_back_with_no_restart() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    put(&store, 1, &[("a", Value::Bool(true)), ("b", Value::Bool(true))]);
    assert!(store.drop_key(&conformance::table("t"), "a").unwrap());
    put(&store, 2, &[("a", Value::I64(2))]);
    drop(store);
    for _ in 0..2 {
        let (store, report) = open(&disk, tiny_manual()).unwrap();
        assert!(report.damages.is_empty(), "{report:?}");
        assert_eq!(found(&store, "a"), [(2, Value::I64(2))]);
        assert_eq!(found(&store, "b").len(), 1);
    }
}

#[test]
fn a_table_of_one_number_keeps_its_rows() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    put(&store, 1, &[("value", Value::F64(1.0))]);
    store.flush().unwrap();
    assert!(store.drop_key(&conformance::table("t"), "value").unwrap());
    assert_eq!(found(&store, "value"), []);
    put(&store, 2, &[("value", Value::F64(2.0))]);
    for _ in 0..2 {
        assert_eq!(found(&store, "value"), [(2, Value::F64(2.0))]);
        assert_eq!(store.tables().unwrap()[0].rows, 2);
        store.flush().unwrap();
        store.compact().unwrap();
    }
}

#[test]
fn dropped_columns_make_room_for_others() {
    let disk = FaultyDisk::new();
    let options = Options { columns_per_table_max: 3, ..tiny_manual() };
    let (store, _) = open(&disk, options).unwrap();
    put(&store, 1, &[("a", Value::Bool(true)), ("b", Value::Bool(true))]);
    let series = store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    let third = batch_of(series, &[(1, &[("c", Value::Bool(true))])]);
    let refused = match store.append(&third, Durability::Memory) {
        Err(StoreError::Rows(refused)) => refused,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused.rows()[0].reason, StoreError::TooManyColumns { limit: 3, .. }), "{refused:?}");
    assert!(store.drop_key(&conformance::table("t"), "a").unwrap());
    store.append(&third, Durability::Memory).unwrap();
}
