//! The sentences about rows that are deleted.

use model::{SeriesId, SeriesKey, TimeRange, Timestamp, Value};

use super::{append, collect_table, device, read, read_all, scan_all, wait};
use crate::{
    Deletion, Durability, Order, ReadOrder, SeriesSet, Store, StoreError, TableRead, TableSnapshot,
    TagMatcher, TagPredicate,
};

/// The checks.
pub(super) const CHECKS: [fn(&dyn Store); 8] = [
    deleted_rows_are_gone_for_later_readers,
    later_rows_stay_whatever_their_time,
    values_are_deleted_by_key_and_the_row_stays,
    a_deletion_takes_only_its_series_and_its_times,
    series_that_match_tags_are_deleted_at_once,
    the_newest_value_left_is_the_latest,
    a_deletion_becomes_durable_like_a_row,
    wrong_deletions_are_refused,
];

fn range(start: i64, end: i64) -> TimeRange {
    TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
}

fn delete(store: &dyn Store, series: SeriesId, range: TimeRange, keys: Option<&[&str]>) -> u64 {
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    let deletion = Deletion { keys, ..Deletion::of_series(series, range).expect("a known series") };
    store.delete_rows(&deletion, Durability::Fsync).expect("room for a deletion")
}

/// Rows at these times with `a` = time and `b` = ten times the time.
fn put(store: &dyn Store, series: SeriesId, times: &[i64]) {
    for ts in times {
        append(store, series, &[(*ts, &[("a", Value::I64(*ts)), ("b", Value::I64(ts.wrapping_mul(10)))])]);
    }
}

fn times(store: &dyn Store, series: SeriesId) -> Vec<i64> {
    read(store, series, &["a", "b"]).into_iter().map(|(ts, _)| ts).collect()
}

/// The number of rows of the table.
fn count(snapshot: &dyn TableSnapshot, read: &TableRead) -> usize {
    collect_table(snapshot, read).expect("a read").iter().map(Vec::len).sum()
}

fn table(store: &dyn Store) -> std::sync::Arc<dyn TableSnapshot> {
    store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table")
}

fn deleted_rows_are_gone_for_later_readers(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1, 2, 3, 4, 5]);
    let before = table(store);
    delete(store, series, range(2, 4), None);
    assert_eq!(times(store, series), [1, 4, 5]);
    let descending = crate::Scan { order: Order::Descending, ..scan_all(series, &["b"]) };
    let found = super::collect(store, &descending).expect("a scan");
    assert_eq!(found.iter().map(|(ts, _)| *ts).collect::<Vec<_>>(), [5, 4, 1]);
    let after = table(store);
    for (snapshot, rows) in [(&after, 3), (&before, 5)] {
        let all = read_all(snapshot.as_ref());
        assert_eq!(count(snapshot.as_ref(), &all), rows);
        let of_series = TableRead { order: ReadOrder::SeriesThenTime, ..all.clone() };
        assert_eq!(count(snapshot.as_ref(), &of_series), rows);
        let counted = snapshot.read(&TableRead { columns: Vec::new(), ..all }).expect("readers");
        let mut sum = 0;
        for mut reader in counted {
            while let Some(batch) = reader.next().expect("a batch") {
                sum += batch.num_rows();
            }
        }
        assert_eq!(sum, rows, "a count without columns");
    }
    delete(store, series, TimeRange::ALL, None);
    assert_eq!(times(store, series), [0_i64; 0]);
    assert_eq!(count(table(store).as_ref(), &read_all(table(store).as_ref())), 0);
    assert_eq!(store.find_series(&SeriesKey::device("telemetry", "d").expect("a key")), Some(series));
}

fn later_rows_stay_whatever_their_time(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1, 2, 3]);
    delete(store, series, range(0, 9), None);
    put(store, series, &[2]);
    append(store, series, &[(1, &[("b", Value::Bool(true))])]);
    let second = (2, vec![Some(Value::I64(2)), Some(Value::I64(20))]);
    assert_eq!(read(store, series, &["a", "b"]), [(1, vec![None, Some(Value::Bool(true))]), second.clone()]);
    delete(store, series, range(1, 2), None);
    assert_eq!(read(store, series, &["a", "b"]), [second]);
}

fn values_are_deleted_by_key_and_the_row_stays(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1, 2, 3]);
    append(store, series, &[(2, &[("a", Value::String("two".into()))])]);
    delete(store, series, range(1, 3), Some(&["a", "never"]));
    let b = |ts: i64| (ts, vec![None, Some(Value::I64(10 * ts))]);
    let third = (3, vec![Some(Value::I64(3)), Some(Value::I64(30))]);
    assert_eq!(read(store, series, &["a", "b"]), [b(1), b(2), third.clone()]);
    delete(store, series, range(1, 3), Some(&["b"]));
    assert_eq!(read(store, series, &["a", "b"]), std::slice::from_ref(&third));
    let after = table(store);
    let all = read_all(after.as_ref());
    assert_eq!(count(after.as_ref(), &all), 3, "rows without values stay rows");
    append(store, series, &[(1, &[("a", Value::F64(0.5))])]);
    assert_eq!(
        read(store, series, &["a"]),
        [(1, vec![Some(Value::F64(0.5))]), (3, vec![third.1[0].clone()])]
    );
    delete(store, series, TimeRange::ALL, Some(&["never"]));
    delete(store, series, TimeRange::ALL, Some(&[]));
    assert_eq!(times(store, series), [1, 3]);
}

fn a_deletion_takes_only_its_series_and_its_times(store: &dyn Store) {
    let series = device(store, "d");
    let other = device(store, "other");
    let elsewhere = store.series(&SeriesKey::device("elsewhere", "d").expect("a key")).expect("a series");
    for series in [series, other, elsewhere] {
        put(store, series, &[i64::MIN, -1, 0, 1, i64::MAX - 1]);
    }
    delete(store, series, range(-1, 1), None);
    delete(store, series, range(1, 1), None);
    delete(store, series, range(9, -9), None);
    assert_eq!(times(store, series), [i64::MIN, 1, i64::MAX - 1]);
    for series in [other, elsewhere] {
        assert_eq!(times(store, series).len(), 5);
    }
    delete(store, series, TimeRange::ALL, None);
    assert_eq!(times(store, series), [0_i64; 0]);
    assert_eq!(times(store, other).len(), 5);
}

fn series_that_match_tags_are_deleted_at_once(store: &dyn Store) {
    let all: Vec<SeriesId> = ["a1", "a2", "b1"].map(|name| device(store, name)).into();
    all.iter().for_each(|series| put(store, *series, &[1, 2]));
    let pattern = TagPredicate::OneOf(vec!["a1".to_owned(), "a2".to_owned()]);
    let matcher = TagMatcher { tag: "device".to_owned(), predicate: pattern };
    let chosen = table(store).select(&[matcher]).expect("a choice");
    let deletion = Deletion { series: chosen, range: range(2, 3), keys: None };
    store.delete_rows(&deletion, Durability::Memory).expect("room for a deletion");
    let found: Vec<usize> = all.iter().map(|series| times(store, *series).len()).collect();
    assert_eq!(found, [1, 1, 2]);
    let nothing = Deletion { series: SeriesSet::new(), range: TimeRange::ALL, keys: None };
    store.delete_rows(&nothing, Durability::Memory).expect("nothing to do");
    assert_eq!(times(store, all[2]).len(), 2);
}

fn the_newest_value_left_is_the_latest(store: &dyn Store) {
    let series = device(store, "d");
    put(store, series, &[1, 2, 3]);
    let latest = || -> Vec<(String, i64)> {
        let latest = store.latest(series, None).expect("latest values");
        latest.into_iter().map(|of| (of.key, of.ts.micros())).collect()
    };
    let both = |ts| vec![("a".to_owned(), ts), ("b".to_owned(), ts)];
    assert_eq!(latest(), both(3));
    delete(store, series, range(3, 4), None);
    assert_eq!(latest(), both(2));
    delete(store, series, range(2, 9), Some(&["a"]));
    assert_eq!(latest(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    put(store, series, &[0]);
    assert_eq!(latest(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    delete(store, series, range(1, 9), None);
    assert_eq!(latest(), both(0));
    delete(store, series, TimeRange::ALL, None);
    assert_eq!(latest(), []);
    let read = TableRead { order: ReadOrder::LastRow(Order::Descending), ..read_all(table(store).as_ref()) };
    assert_eq!(count(table(store).as_ref(), &read), 0);
}

fn a_deletion_becomes_durable_like_a_row(store: &dyn Store) {
    let series = device(store, "d");
    for (n, class) in Durability::ALL.into_iter().enumerate() {
        put(store, series, &[n as i64]);
        let appended = store.progress().appended;
        let deletion = Deletion::of_series(series, TimeRange::ALL).expect("a known series");
        let sequence = store.delete_rows(&deletion, class).expect("room for a deletion");
        assert_eq!((sequence, store.progress().appended), (appended + 1, appended + 1));
        if class == Durability::Fsync {
            wait(store, class, sequence);
        }
    }
    let rows = store.status().rows_appended;
    assert_eq!(rows, 3, "a deletion is not a row");
}

fn wrong_deletions_are_refused(store: &dyn Store) {
    let series = device(store, "d");
    let elsewhere = store.series(&SeriesKey::device("elsewhere", "d").expect("a key")).expect("a series");
    put(store, series, &[1]);
    let all = |series: &[SeriesId]| Deletion {
        series: series.iter().map(|series| series.0 as u32).collect(),
        range: TimeRange::ALL,
        keys: None,
    };
    let refused = store.delete_rows(&all(&[series, elsewhere]), Durability::Fsync);
    assert!(matches!(refused, Err(StoreError::OverLimit { .. })), "{refused:?}");
    let unknown = SeriesId(u64::from(u32::MAX) - 1);
    let refused = store.delete_rows(&all(&[series, unknown]), Durability::Fsync);
    assert!(matches!(refused, Err(StoreError::UnknownSeries(id)) if id == unknown), "{refused:?}");
    assert!(Deletion::of_series(SeriesId(u64::MAX), TimeRange::ALL).is_err());
    assert_eq!(times(store, series), [1]);
    store.close().expect("a healthy store closes");
    assert!(matches!(store.delete_rows(&all(&[series]), Durability::Fsync), Err(StoreError::Closed)));
    assert_eq!(times(store, series), [1]);
}
