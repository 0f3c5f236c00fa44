//! The sentences about series and tables that are deleted.

use std::time::Duration;

use model::{SeriesId, SeriesKey, TimeRange, Value};

use super::{append, batch_of, collect, collect_table, device, read, read_all, scan_all, wait};
use crate::{Deletion, Durability, SeriesSet, Store, StoreError, TableStatus};

/// The checks.
pub(super) const CHECKS: [fn(&dyn Store); 5] = [
    a_deleted_series_is_unknown,
    a_series_that_comes_again_inherits_nothing,
    a_snapshot_keeps_deleted_series_and_tables,
    a_dropped_table_leaves_nothing_to_the_next_one,
    deletions_of_series_need_a_store_that_writes,
];

fn key(table: &str, name: &str) -> SeriesKey {
    SeriesKey::device(table, name).expect("a key")
}

fn put(store: &dyn Store, series: SeriesId, times: &[i64]) {
    for ts in times {
        append(store, series, &[(*ts, &[("n", Value::I64(*ts))])]);
    }
}

fn set(series: &[SeriesId]) -> SeriesSet {
    series.iter().map(|series| series.0 as u32).collect()
}

fn delete(store: &dyn Store, series: &[SeriesId]) {
    let sequence = store.delete_series(&set(series), Durability::Fsync).expect("room for a deletion");
    wait(store, Durability::Fsync, sequence);
}

fn statuses(store: &dyn Store) -> Vec<TableStatus> {
    store.tables().expect("the tables")
}

fn rows(store: &dyn Store, table: &str) -> usize {
    let snapshot = store.snapshot(&super::rows::table(table)).expect("a snapshot").expect("the table");
    collect_table(snapshot.as_ref(), &read_all(snapshot.as_ref())).expect("a read").concat().len()
}

fn a_deleted_series_is_unknown(store: &dyn Store) {
    let (gone, kept) = (device(store, "gone"), device(store, "kept"));
    for series in [gone, kept] {
        put(store, series, &[1, 2]);
    }
    delete(store, &[gone]);
    assert_eq!(store.find_series(&key("telemetry", "gone")), None);
    assert_eq!(store.find_series(&key("telemetry", "kept")), Some(kept));
    let is_unknown =
        |result: Result<(), StoreError>| matches!(result, Err(StoreError::UnknownSeries(id)) if id == gone);
    assert!(is_unknown(collect(store, &scan_all(gone, &["n"])).map(drop)));
    assert!(is_unknown(store.latest(gone, None).map(drop)));
    let batch = batch_of(gone, &[(3, &[("n", Value::I64(3))])]);
    let is_named = |result: Result<(), StoreError>| match result {
        Err(StoreError::Rows(refused)) => is_unknown(Err(refused.rows()[0].reason.clone())),
        _ => false,
    };
    assert!(is_named(store.append(&batch, Durability::Memory).map(drop)));
    assert!(is_named(store.missing_columns(&batch).map(drop)));
    let again = Deletion::of_series(gone, TimeRange::ALL).expect("an id");
    assert!(is_unknown(store.delete_rows(&again, Durability::Memory).map(drop)));
    assert!(is_unknown(store.delete_series(&set(&[gone]), Durability::Memory).map(drop)));
    assert_eq!((rows(store, "telemetry"), read(store, kept, &["n"]).len()), (2, 2));
    let snapshot = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    assert_eq!(snapshot.select(&[]).expect("all series"), set(&[kept]));
    assert_eq!((statuses(store)[0].series, store.status().series), (1, 1));
    delete(store, &[kept]);
    store.delete_series(&SeriesSet::new(), Durability::Memory).expect("nothing to do");
    assert_eq!((statuses(store)[0].series, rows(store, "telemetry")), (0, 0), "the table stays");
}

fn a_series_that_comes_again_inherits_nothing(store: &dyn Store) {
    let first = device(store, "d");
    put(store, first, &[1, 2]);
    delete(store, &[first]);
    let second = device(store, "d");
    assert_ne!(second, first);
    assert_eq!(
        (read(store, second, &["n"]).len(), store.latest(second, None).expect("latest").len()),
        (0, 0)
    );
    put(store, second, &[2]);
    assert_eq!(read(store, second, &["n"]), [(2, vec![Some(Value::I64(2))])]);
    assert_eq!((rows(store, "telemetry"), statuses(store)[0].series), (1, 1));
    assert_eq!(device(store, "d"), second);
}

fn a_snapshot_keeps_deleted_series_and_tables(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1, 2]);
    let before = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    delete(store, &[series]);
    assert!(store.drop_table(&super::rows::table("telemetry")).expect("room for a drop"));
    assert_eq!(before.select(&[]).expect("all series"), set(&[series]));
    let found = collect_table(before.as_ref(), &read_all(before.as_ref())).expect("a read").concat();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0][0], Some(Value::String("d".into())));
}

fn a_dropped_table_leaves_nothing_to_the_next_one(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("n", Value::String("text".into())), ("old", Value::Bool(true))])]);
    let other = store.series(&key("other", "d")).expect("a series");
    put(store, other, &[1]);
    store.set_ttl(&super::rows::table("telemetry"), Some(Duration::from_secs(86_400))).expect("a ttl");
    assert!(!store.drop_table(&super::rows::table("no such table")).expect("nothing to drop"));
    assert!(store.drop_table(&super::rows::table("telemetry")).expect("room for a drop"));
    assert!(
        !store.drop_table(&super::rows::table("telemetry")).expect("nothing to drop"),
        "it is dropped already"
    );

    assert!(store.snapshot(&super::rows::table("telemetry")).expect("an answer").is_none());
    assert_eq!(store.find_series(&key("telemetry", "d")), None);
    assert!(matches!(store.latest(series, None), Err(StoreError::UnknownSeries(_))));
    let names: Vec<String> = statuses(store).into_iter().map(|of| of.table.name().to_owned()).collect();
    assert_eq!(
        (names, store.status().tables, store.ttl(&super::rows::table("telemetry"))),
        (vec!["other".to_owned()], 1, None)
    );
    assert_eq!(read(store, other, &["n"]).len(), 1);

    let again = device(store, "d");
    assert_ne!(again, series);
    assert_eq!(rows(store, "telemetry"), 0);
    put(store, again, &[5]);
    let snapshot = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    let columns: Vec<_> = snapshot.columns().fields.iter().map(|field| field.column.to_string()).collect();
    assert_eq!((columns, rows(store, "telemetry")), (vec!["n".to_owned()], 1));
    assert_eq!(store.latest(again, None).expect("latest")[0].value, Value::I64(5));
}

fn deletions_of_series_need_a_store_that_writes(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1]);
    let elsewhere = store.series(&key("elsewhere", "d")).expect("a series");
    let refused = store.delete_series(&set(&[series, elsewhere]), Durability::Memory);
    assert!(matches!(refused, Err(StoreError::OverLimit { .. })), "{refused:?}");
    store.close().expect("a healthy store closes");
    assert!(matches!(store.delete_series(&set(&[series]), Durability::Memory), Err(StoreError::Closed)));
    assert!(matches!(store.drop_table(&super::rows::table("telemetry")), Err(StoreError::Closed)));
    assert_eq!(read(store, series, &["n"]).len(), 1);
}
