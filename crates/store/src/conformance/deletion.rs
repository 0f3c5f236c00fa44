//! The sentences about keys that are dropped.

use model::{FieldType, SeriesKey, Value};

use super::{append, collect_table, device, read, read_all};
use crate::{Store, StoreError};

/// The checks.
pub(super) const CHECKS: [fn(&dyn Store); 4] = [
    a_dropped_key_is_gone_for_later_readers,
    a_key_that_comes_again_has_a_type_of_its_own,
    other_tables_and_keys_keep_their_values,
    a_drop_needs_a_store_that_writes,
];

/// Name, key and type of each field column.
fn columns(store: &dyn Store) -> Vec<(String, String, FieldType)> {
    let snapshot = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    let fields = &snapshot.columns().fields;
    fields.iter().map(|of| (of.column.to_string(), of.key.to_string(), of.field_type)).collect()
}

fn a_dropped_key_is_gone_for_later_readers(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("a", Value::I64(1)), ("b", Value::I64(10))])]);
    append(store, series, &[(2, &[("a", Value::String("x".into()))]), (3, &[("b", Value::I64(30))])]);
    let before = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    assert!(store.drop_key(&super::rows::table("telemetry"), "a").expect("room for a drop"));
    assert!(
        !store.drop_key(&super::rows::table("telemetry"), "a").expect("nothing to drop"),
        "it is dropped already"
    );

    assert_eq!(read(store, series, &["a"]), []);
    assert_eq!(read(store, series, &["a", "b"]).len(), 2);
    let latest = store.latest(series, None).expect("latest values");
    assert_eq!(latest.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(store.latest(series, Some(&["a".to_owned()])).expect("latest values"), []);
    assert_eq!(columns(store), [("b".to_owned(), "b".to_owned(), FieldType::I64)]);

    let after = store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table");
    let rows = collect_table(after.as_ref(), &read_all(after.as_ref())).expect("a read").concat();
    let row = |ts: i64, b: Option<i64>| {
        vec![Some(Value::String("d".into())), Some(Value::I64(ts)), b.map(Value::I64)]
    };
    assert_eq!(rows, [row(1, Some(10)), row(2, None), row(3, Some(30))], "rows stay");
    let rows = collect_table(before.as_ref(), &read_all(before.as_ref())).expect("a read").concat();
    assert_eq!(rows[0][2], Some(Value::I64(1)), "a snapshot of before keeps the values");
}

fn a_key_that_comes_again_has_a_type_of_its_own(store: &dyn Store) {
    let series = device(store, "d");
    for round in 0..3 {
        let value = match round {
            0 => Value::String("12".into()),
            1 => Value::F64(1.5),
            _ => Value::I64(2),
        };
        append(store, series, &[(round, &[("speed", value.clone())])]);
        let column = ("speed".to_owned(), "speed".to_owned(), value.field_type());
        assert_eq!(columns(store), [column], "the plain name is free again");
        assert_eq!(read(store, series, &["speed"]), [(round, vec![Some(value.clone())])]);
        assert_eq!(store.latest(series, None).expect("latest values")[0].value, value);
        if round < 2 {
            assert!(store.drop_key(&super::rows::table("telemetry"), "speed").expect("room for a drop"));
        }
    }
    append(store, series, &[(9, &[("speed", Value::Bool(true))])]);
    let names: Vec<String> = columns(store).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["speed:bool", "speed"]);
}

fn other_tables_and_keys_keep_their_values(store: &dyn Store) {
    let series = device(store, "d");
    let other = store.series(&SeriesKey::device("other", "d").expect("a key")).expect("a series");
    for series in [series, other] {
        append(store, series, &[(1, &[("a", Value::F64(1.0))])]);
    }
    assert!(!store.drop_key(&super::rows::table("no such table"), "a").expect("nothing to drop"));
    assert!(
        !store.drop_key(&super::rows::table("telemetry"), "device").expect("nothing to drop"),
        "a tag is not a key"
    );
    assert!(store.drop_key(&super::rows::table("telemetry"), "a").expect("room for a drop"));
    assert_eq!(read(store, series, &["a"]), []);
    assert_eq!(read(store, other, &["a"]), [(1, vec![Some(Value::F64(1.0))])]);
}

fn a_drop_needs_a_store_that_writes(store: &dyn Store) {
    let series = device(store, "d");
    append(store, series, &[(1, &[("a", Value::F64(1.0))])]);
    store.close().expect("a healthy store closes");
    assert!(matches!(store.drop_key(&super::rows::table("telemetry"), "a"), Err(StoreError::Closed)));
}
