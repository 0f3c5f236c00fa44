//! The sentences of the contract as checks that every backend must pass.
//!
//! The tests of a backend call [`run`] with a function that makes an empty store. A failed check panics, and its name
//! is in the backtrace. No check depends on time: a wait ends when [`Progress`](crate::Progress) says so.

mod definitions;
mod deletion;
mod deletion_of_rows;
mod deletion_of_series;
mod late_failures;
mod namespaces;
mod numbers;
mod patient;
mod retention;
mod rows;
mod series_lists;
mod tables;
mod wrapper;

use std::ops::ControlFlow;
use std::sync::Arc;

pub use late_failures::run_late_failures;
pub use rows::{FoundRow, RowSpec, batch_of, collect, scan_all, table, wait};
pub use tables::{TableRow, collect_table, read_all};
pub use wrapper::Wrapper;

use model::{FieldType, SeriesId, SeriesKey, TimeRange, Timestamp, Value, ValueRef};

use crate::{Durability, Order, RefusedRow, Scan, Store, StoreError};
use rows::{append, device, read};

/// Runs every check, each on a store of its own made by `make`.
pub fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    let checks: [fn(&dyn Store); 16] = [
        series_ids_are_stable,
        unknown_series_are_named,
        rows_are_readable_at_once,
        durability_arrives_in_order,
        a_repeated_append_changes_nothing,
        fields_are_merged_and_the_last_write_wins,
        a_value_of_another_type_hides_the_older_one,
        scans_walk_both_ways_within_range_and_limit,
        a_visitor_can_stop,
        rows_without_an_asked_key_are_not_visited,
        latest_is_by_time_not_by_arrival,
        a_refused_batch_leaves_nothing,
        every_refused_row_is_named,
        a_missing_column_is_named_and_not_made_unasked,
        extreme_values_and_times_come_back,
        close_keeps_reads_and_refuses_writes,
    ];
    let of_tables = tables::CHECKS.into_iter().chain(numbers::CHECKS);
    let all = checks
        .into_iter()
        .chain(of_tables)
        .chain(retention::CHECKS)
        .chain(deletion::CHECKS)
        .chain(deletion_of_rows::CHECKS);
    let all = all.chain(deletion_of_series::CHECKS).chain(series_lists::CHECKS).chain(namespaces::CHECKS);
    let all = all.chain(definitions::CHECKS);
    for check in all {
        let store = make();
        check(&patient::PatientStore(Arc::clone(&store)));
        // Closing twice is allowed; threads of the store end here.
        store.close().expect("a healthy store closes");
    }
}

fn series_ids_are_stable(store: &dyn Store) {
    let key = SeriesKey::device("telemetry", "a").expect("a valid name");
    assert_eq!(store.find_series(&key), None);
    let a = device(store, "a");
    assert_eq!(device(store, "a"), a);
    assert_ne!(device(store, "b"), a);
    assert_eq!(store.find_series(&key), Some(a));
    assert_eq!(store.status().series, 2);
}

fn unknown_series_are_named(store: &dyn Store) {
    let nobody = SeriesId(u64::MAX - 1);
    let batch = batch_of(nobody, &[(1, &[("x", Value::I64(1))])]);
    let append = store.append(&batch, Durability::Memory);
    assert!(append.as_ref().is_err_and(StoreError::is_unknown_series), "{append:?}");
    assert!(append.expect_err("a refusal").to_string().contains(&nobody.0.to_string()));
    assert!(matches!(store.latest(nobody, None), Err(StoreError::UnknownSeries(_))));
    assert!(matches!(collect(store, &scan_all(nobody, &["x"])), Err(StoreError::UnknownSeries(_))));
}

fn rows_are_readable_at_once(store: &dyn Store) {
    for (index, class) in Durability::ALL.into_iter().enumerate() {
        let series = device(store, class.name());
        let rows: &[RowSpec<'_>] = &[(10, &[("n", Value::I64(index as i64))])];
        let before = store.progress().appended;
        let ticket = store.append(&batch_of(series, rows), class).expect("room");
        assert_eq!(ticket, before + 1);
        assert_eq!(read(store, series, &["n"]), [(10, vec![Some(Value::I64(index as i64))])]);
        assert_eq!(store.latest(series, None).expect("latest").len(), 1);
    }
}

fn durability_arrives_in_order(store: &dyn Store) {
    let series = device(store, "d");
    let mut last = 0;
    for n in 0..200 {
        let class = Durability::ALL[n % 3];
        let rows: &[RowSpec<'_>] = &[(n as i64, &[("n", Value::I64(n as i64))])];
        let ticket = store.append(&batch_of(series, rows), class).expect("room");
        assert_eq!(ticket, last + 1);
        last = ticket;
        let progress = store.progress();
        assert!(progress.durable <= progress.written && progress.written <= progress.appended);
        if n % 50 == 0 {
            wait(store, class, ticket);
        }
    }
    wait(store, Durability::Os, last);
    let last = append(store, series, &[(999, &[("n", Value::I64(999))])]);
    wait(store, Durability::Fsync, last);
    assert_eq!(read(store, series, &["n"]).len(), 201);
}

fn a_repeated_append_changes_nothing(store: &dyn Store) {
    let series = device(store, "d");
    let rows: &[RowSpec<'_>] = &[(1, &[("a", Value::I64(1))]), (2, &[("a", Value::F64(2.5))])];
    append(store, series, rows);
    let once = read(store, series, &["a"]);
    append(store, series, rows);
    assert_eq!(read(store, series, &["a"]), once);
    assert_eq!(once.len(), 2);
}

fn fields_are_merged_and_the_last_write_wins(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(7, &[("a", Value::I64(1)), ("b", Value::Bool(true)), ("a", Value::I64(2))])]);
    append(store, series, &[(7, &[("b", Value::Bool(false))]), (7, &[("c", Value::String("x".into()))])]);
    let values = vec![
        Some(Value::I64(2)),
        Some(Value::Bool(false)),
        Some(Value::String("x".into())),
        None,
        Some(Value::I64(2)),
    ];
    assert_eq!(read(store, series, &["a", "b", "c", "never", "a"]), [(7, values)]);
}

fn a_value_of_another_type_hides_the_older_one(store: &dyn Store) {
    let series = device(store, "d");
    let other = device(store, "other");
    append(store, series, &[(1, &[("v", Value::I64(1))]), (2, &[("v", Value::I64(2))])]);
    append(store, series, &[(1, &[("v", Value::String("one".into()))])]);
    append(store, series, &[(2, &[("v", Value::Json("[2]".into()))]), (2, &[("v", Value::I64(22))])]);
    // A key that looks like a sibling column, a tag or the time is a key like any other.
    append(
        store,
        other,
        &[(1, &[("v:string", Value::I64(5)), ("device", Value::I64(6)), ("ts", Value::I64(7))])],
    );
    let one = Some(Value::String("one".into()));
    assert_eq!(read(store, series, &["v"]), [(1, vec![one]), (2, vec![Some(Value::I64(22))])]);
    assert_eq!(read(store, series, &["v:string"]), []);
    let values = vec![Some(Value::I64(5)), Some(Value::I64(6)), Some(Value::I64(7)), None];
    assert_eq!(read(store, other, &["v:string", "device", "ts", "v"]), [(1, values)]);
    let latest = store.latest(series, None).expect("latest");
    assert_eq!((latest.len(), &latest[0].value), (1, &Value::I64(22)));
}

fn scans_walk_both_ways_within_range_and_limit(store: &dyn Store) {
    let series = device(store, "d");
    let noise = device(store, "noise");
    for ts in [5, 1, 4, 2, 3] {
        append(store, series, &[(ts, &[("n", Value::I64(ts))])]);
        append(store, noise, &[(ts, &[("n", Value::I64(-ts))])]);
    }
    let times = |range: (i64, i64), order, limit| {
        let range = TimeRange::new(Timestamp::from_micros(range.0), Timestamp::from_micros(range.1));
        let scan = Scan { range, order, limit, ..scan_all(series, &["n"]) };
        let rows = collect(store, &scan).expect("a scan");
        rows.into_iter().map(|(ts, _)| ts).collect::<Vec<_>>()
    };
    assert_eq!(times((0, 9), Order::Ascending, 99), [1, 2, 3, 4, 5]);
    assert_eq!(times((2, 5), Order::Ascending, 99), [2, 3, 4]);
    assert_eq!(times((2, 5), Order::Descending, 99), [4, 3, 2]);
    assert_eq!(times((0, 9), Order::Ascending, 2), [1, 2]);
    assert_eq!(times((0, 9), Order::Descending, 2), [5, 4]);
    assert_eq!(times((0, 9), Order::Descending, 0), [0_i64; 0]);
    assert_eq!(times((3, 3), Order::Ascending, 99), [0_i64; 0]);
    assert_eq!(times((5, 2), Order::Ascending, 99), [0_i64; 0]);
}

fn a_visitor_can_stop(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("n", Value::I64(1))]), (2, &[("n", Value::I64(2))])]);
    let mut seen = 0;
    let stopped = store.scan(&scan_all(series, &["n"]), &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert!(stopped.is_ok());
    assert_eq!(seen, 1);
}

fn rows_without_an_asked_key_are_not_visited(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("a", Value::I64(1))]), (2, &[("b", Value::I64(2))]), (3, &[])]);
    append(store, series, &[(4, &[("a", Value::I64(4))])]);
    let scan = Scan { limit: 2, ..scan_all(series, &["a"]) };
    let rows = collect(store, &scan).expect("a scan");
    assert_eq!(rows.iter().map(|(ts, _)| *ts).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(read(store, series, &[]), []);
}

fn latest_is_by_time_not_by_arrival(store: &dyn Store) {
    let series = device(store, "d");
    assert_eq!(store.latest(series, None).expect("latest"), []);
    append(store, series, &[(20, &[("b", Value::I64(20)), ("a", Value::I64(20))])]);
    append(store, series, &[(10, &[("a", Value::I64(10)), ("c", Value::Bool(true))])]);
    append(store, series, &[(20, &[("b", Value::String("again".into()))])]);
    let latest = store.latest(series, None).expect("latest");
    let found: Vec<_> =
        latest.iter().map(|latest| (latest.key.as_str(), latest.ts.micros(), latest.value.clone())).collect();
    let again = Value::String("again".into());
    assert_eq!(found, [("a", 20, Value::I64(20)), ("b", 20, again), ("c", 10, Value::Bool(true))]);
    let asked = ["c".to_owned(), "never".to_owned(), "a".to_owned()];
    let some = store.latest(series, Some(&asked)).expect("latest");
    assert_eq!(some.iter().map(|latest| latest.key.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

fn a_refused_batch_leaves_nothing(store: &dyn Store) {
    let series = device(store, "d");
    let before = store.progress().appended;
    let long = "k".repeat(256);
    for bad in ["", "a\u{7}b", long.as_str()] {
        let rows: &[RowSpec<'_>] = &[(1, &[("good", Value::I64(1))]), (2, &[(bad, Value::I64(2))])];
        let refused = store.append(&batch_of(series, rows), Durability::Fsync);
        let Err(StoreError::Rows(rows)) = refused else { panic!("{bad:?}: {refused:?}") };
        assert!(matches!(rows.rows(), [RefusedRow { row: 1, reason: StoreError::Name(_), .. }]), "{rows:?}");
    }
    let mut mixed = batch_of(series, &[(1, &[("good", Value::I64(1))])]);
    let mut builder = mixed.builder();
    builder.field("good", ValueRef::I64(1));
    builder.row(SeriesId(u64::MAX - 1), Timestamp::from_micros(1));
    builder.finish();
    assert!(store.append(&mixed, Durability::Fsync).is_err());
    assert_eq!(store.progress().appended, before);
    assert_eq!(read(store, series, &["good"]), []);
    assert_eq!(store.latest(series, None).expect("latest"), []);
}

fn every_refused_row_is_named(store: &dyn Store) {
    let (one, other, nobody) = (device(store, "d"), device(store, "e"), SeriesId(u64::MAX - 1));
    let mut batch = model::Batch::new();
    let mut builder = batch.builder();
    let rows =
        [(one, "n"), (nobody, "n"), (one, ""), (other, "n"), (nobody, ""), (other, "a\u{7}b"), (one, "m")];
    for (ts, (series, key)) in (0..).zip(rows) {
        builder.field("good", ValueRef::I64(ts));
        builder.field(key, ValueRef::I64(ts));
        builder.row(series, Timestamp::from_micros(ts));
    }
    builder.finish();
    // A store may name them in several answers, each of which has all rows with the same fault.
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut named = Vec::new();
    let appended = loop {
        let mut rest = model::Batch::new();
        left.iter().for_each(|row| rest.extend_from(&batch, *row..row + 1));
        let refused = match store.append(&rest, Durability::Fsync) {
            Ok(sequence) => break sequence,
            Err(StoreError::Rows(refused)) => refused,
            Err(other) => panic!("{other:?}"),
        };
        let wanted = store.missing_columns(&rest).map(drop);
        assert!(matches!(&wanted, Err(StoreError::Rows(_))), "{wanted:?}");
        assert!(refused.rows().iter().all(|row| row.fields.is_empty()), "{refused:?}");
        assert!(refused.rows().is_sorted_by(|one, next| one.row < next.row), "{refused:?}");
        let of_reason = |of: fn(&StoreError) -> bool| {
            refused
                .rows()
                .iter()
                .filter(|refused| of(&refused.reason))
                .map(|refused| left[refused.row])
                .collect()
        };
        let unknown: Vec<usize> = of_reason(|reason| matches!(reason, StoreError::UnknownSeries(_)));
        let names: Vec<usize> = of_reason(|reason| matches!(reason, StoreError::Name(_)));
        assert!(
            (unknown.is_empty() || unknown == [1, 4]) && (names.is_empty() || names == [2, 5]),
            "{refused:?}"
        );
        left.retain(|row| !unknown.contains(row) && !names.contains(row));
        named.extend(unknown.into_iter().chain(names));
    };
    named.sort_unstable();
    assert_eq!(named, [1, 2, 4, 5]);
    assert_eq!(appended, 3);
    let value = |ts| (ts, vec![Some(Value::I64(ts))]);
    assert_eq!(read(store, one, &["good"]), [value(0), value(6)]);
    assert_eq!(read(store, other, &["good"]), [value(3)]);
}

fn a_missing_column_is_named_and_not_made_unasked(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("a", Value::I64(1))])]);
    let known = batch_of(series, &[(2, &[("a", Value::I64(2))])]);
    assert_eq!(store.missing_columns(&known).expect("an answer"), []);
    let taken = store.append_known(&known, Durability::Memory).expect("room");
    assert_eq!(taken, Some(store.progress().appended));
    let new = batch_of(
        series,
        &[
            (3, &[("a", Value::I64(3)), ("b", Value::Bool(true))]),
            (4, &[("b", Value::Bool(true)), ("a", Value::String("x".into()))]),
        ],
    );
    let names = |missing: &[crate::MissingColumn<'_>]| {
        missing.iter().map(|one| (one.row, one.key.to_owned(), one.field_type)).collect::<Vec<_>>()
    };
    let missing = store.missing_columns(&new).expect("an answer");
    assert_eq!(
        names(&missing),
        [(0, "b".to_owned(), FieldType::Bool), (1, "a".to_owned(), FieldType::String)]
    );
    for one in missing {
        assert_eq!((one.table.name(), one.series, one.table_columns), ("telemetry", series, 2));
    }
    let mut both = batch_of(device(store, "e"), &[(5, &[("b", Value::Bool(true))])]);
    both.extend_from(&new, 0..2);
    let missing = store.missing_columns(&both).expect("an answer");
    let rows: Vec<_> = missing.iter().map(|one| (one.row, one.series == series, one.key)).collect();
    assert_eq!(rows, [(0, false, "b"), (1, true, "b"), (2, true, "a")], "once for each series");
    assert_eq!(store.append_known(&new, Durability::Memory).expect("an answer"), None);
    let values = |n| (n, vec![Some(Value::I64(n)), None]);
    assert_eq!(read(store, series, &["a", "b"]), [values(1), values(2)], "nothing of it was taken");
    store.append(&new, Durability::Memory).expect("room");
    assert_eq!(store.missing_columns(&new).expect("an answer"), []);
    assert!(store.append_known(&new, Durability::Memory).expect("room").is_some());
}

fn extreme_values_and_times_come_back(store: &dyn Store) {
    let series = device(store, "d");
    let values = [
        Value::I64(i64::MIN),
        Value::I64(i64::MAX),
        Value::F64(-0.0),
        Value::F64(f64::MIN_POSITIVE),
        Value::String(String::new()),
        Value::String("\u{0}ä速\u{10ffff}".into()),
        Value::Json("{\"a\":[1,2.50,\"x\"]}".into()),
        Value::Bool(false),
    ];
    let times = [i64::MIN, i64::MIN + 1, -86_400_000_001, -1, 0, 1, 4_102_444_800_000_000, i64::MAX - 1];
    for (ts, value) in times.iter().zip(&values) {
        append(store, series, &[(*ts, &[("v", value.clone())])]);
    }
    let expected: Vec<_> =
        times.iter().zip(&values).map(|(ts, value)| (*ts, vec![Some(value.clone())])).collect();
    assert_eq!(read(store, series, &["v"]), expected);
    assert_eq!(store.latest(series, None).expect("latest")[0].value, Value::Bool(false));
}

fn close_keeps_reads_and_refuses_writes(store: &dyn Store) {
    let series = device(store, "d");
    let rows: &[RowSpec<'_>] = &[(1, &[("n", Value::I64(1))])];
    let ticket = store.append(&batch_of(series, rows), Durability::Memory).expect("room");
    store.close().expect("a healthy store closes");
    assert!(store.progress().durable >= ticket);
    let refused = store.append(&batch_of(series, rows), Durability::Memory);
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    assert_eq!(read(store, series, &["n"]).len(), 1);
}
