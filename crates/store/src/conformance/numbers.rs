//! The sentences of the contract about integers and floats of one key.

use arrow_schema::DataType;
use model::{FieldType, SeriesId, Value};

use super::rows::{append, device, read};
use super::tables::{TableRow, collect_table, read_all};
use crate::table::{COLUMN_KIND, COLUMN_NAME};
use crate::{Order, ReadOrder, Store, TableRead, TableSnapshot};

/// All checks of this file.
pub(super) const CHECKS: [fn(&dyn Store); 5] = [
    numbers_of_a_key_have_one_column,
    an_exact_integer_is_beside_the_number,
    of_two_kinds_of_number_the_last_write_wins,
    the_end_of_a_series_may_have_either_kind,
    many_rows_of_both_kinds_come_back,
];

/// An integer that no f64 can represent, and the nearest f64.
const LARGE: i64 = 9_007_199_254_740_993;
const NEAREST: f64 = 9_007_199_254_740_992.0;

fn snapshot(store: &dyn Store) -> std::sync::Arc<dyn TableSnapshot> {
    store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table")
}

/// Names and types of the field columns.
fn fields(snapshot: &dyn TableSnapshot) -> Vec<(String, DataType)> {
    let schema = snapshot.columns().schema();
    let fields = schema.fields().iter().skip(2);
    fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// The rows of these columns.
fn columns(snapshot: &dyn TableSnapshot, names: &[&str]) -> Vec<TableRow> {
    let schema = snapshot.columns().schema();
    let columns = names.iter().map(|name| schema.index_of(name).expect("a column")).collect();
    collect_table(snapshot, &TableRead { columns, ..read_all(snapshot) }).expect("a read").concat()
}

fn integer(n: i64) -> Option<Value> {
    Some(Value::I64(n))
}

fn float(n: f64) -> Option<Value> {
    Some(Value::F64(n))
}

fn numbers_of_a_key_have_one_column(store: &dyn Store) {
    let one = device(store, "a");
    let put = |ts: i64, fields: &[(&str, Value)]| append(store, one, &[(ts, fields)]);
    let named = |expected: &[(&str, DataType)]| {
        let expected: Vec<_> = expected.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
        assert_eq!(fields(snapshot(store).as_ref()), expected);
    };
    put(1, &[("speed", Value::I64(20)), ("level", Value::F64(0.5)), ("state", Value::String("n/a".into()))]);
    put(1, &[("state", Value::I64(1))]);
    named(&[
        ("speed", DataType::Int64),
        ("level", DataType::Float64),
        ("state:i64", DataType::Int64),
        ("state", DataType::Utf8View),
    ]);
    let before = snapshot(store);
    put(2, &[("speed", Value::F64(20.5)), ("level", Value::I64(1)), ("state", Value::F64(1.5))]);
    assert_eq!(columns(before.as_ref(), &["speed"]), [[integer(20)]]);
    // A key that takes the name of a column which it has not made.
    put(3, &[("speed:i64", Value::I64(7)), ("state:i64", Value::Bool(true))]);
    named(&[
        ("speed", DataType::Float64),
        ("speed:i64", DataType::Int64),
        ("level", DataType::Float64),
        ("level:i64", DataType::Int64),
        ("state:f64", DataType::Float64),
        ("state:f64:i64", DataType::Int64),
        ("state", DataType::Utf8View),
        ("speed:i64:i64", DataType::Int64),
        ("state:i64:bool", DataType::Boolean),
    ]);
    let after = snapshot(store);
    let schema = after.columns().schema();
    for (name, kind, key) in
        [("speed", "f64", "speed"), ("speed:i64", "i64", "speed"), ("speed:i64:i64", "i64", "speed:i64")]
    {
        let metadata = schema.field_with_name(name).expect("a column").metadata();
        assert_eq!((metadata[COLUMN_KIND].as_str(), metadata[COLUMN_NAME].as_str()), (kind, key), "{name}");
    }
    let names = ["speed", "level", "state:f64"];
    let expected =
        [[float(20.0), float(0.5), float(1.0)], [float(20.5), float(1.0), float(1.5)], [None, None, None]];
    assert_eq!(columns(after.as_ref(), &names), expected);
    // A read of the key of one series gives the values as they arrived.
    assert_eq!(read(store, one, &["speed"]), [(1, vec![integer(20)]), (2, vec![float(20.5)])]);
}

fn an_exact_integer_is_beside_the_number(store: &dyn Store) {
    let one = device(store, "a");
    append(store, one, &[(1, &[("n", Value::I64(LARGE))]), (2, &[("n", Value::F64(-0.5))])]);
    append(store, one, &[(3, &[("n", Value::I64(i64::MIN))]), (4, &[("n", Value::Bool(true))])]);
    let snapshot = snapshot(store);
    let expected: [TableRow; 4] = [
        vec![float(NEAREST), integer(LARGE), None],
        vec![float(-0.5), None, None],
        vec![float(i64::MIN as f64), integer(i64::MIN), None],
        vec![None, None, Some(Value::Bool(true))],
    ];
    assert_eq!(columns(snapshot.as_ref(), &["n", "n:i64", "n:bool"]), expected);
    // Each column by itself, and one of them twice.
    let alone = |name, index: usize| {
        let expected: Vec<TableRow> = expected.iter().map(|row| vec![row[index].clone()]).collect();
        assert_eq!(columns(snapshot.as_ref(), &[name]), expected);
    };
    alone("n", 0);
    alone("n:i64", 1);
    let twice: Vec<TableRow> =
        expected.iter().map(|row| vec![row[1].clone(), row[0].clone(), row[1].clone()]).collect();
    assert_eq!(columns(snapshot.as_ref(), &["n:i64", "n", "n:i64"]), twice);
    let latest = store.latest(one, None).expect("latest values");
    assert_eq!((latest.len(), &latest[0].value), (1, &Value::Bool(true)));
}

fn of_two_kinds_of_number_the_last_write_wins(store: &dyn Store) {
    let one = device(store, "a");
    let put = |ts: i64, value: Value| append(store, one, &[(ts, &[("n", value)])]);
    put(1, Value::I64(1));
    put(1, Value::F64(1.5));
    put(2, Value::F64(2.5));
    put(2, Value::I64(2));
    put(3, Value::I64(3));
    put(3, Value::F64(3.5));
    put(3, Value::String("three".into()));
    put(4, Value::String("four".into()));
    put(4, Value::F64(4.5));
    put(4, Value::I64(4));
    append(store, one, &[(5, &[("n", Value::F64(5.5)), ("n", Value::I64(5))]), (5, &[("m", Value::I64(0))])]);
    let expected: [TableRow; 5] = [
        vec![float(1.5), None],
        vec![float(2.0), integer(2)],
        vec![None, None],
        vec![float(4.0), integer(4)],
        vec![float(5.0), integer(5)],
    ];
    assert_eq!(columns(snapshot(store).as_ref(), &["n", "n:i64"]), expected);
    let latest = store.latest(one, Some(&["n".to_owned()])).expect("latest values");
    assert_eq!(latest[0].value, Value::I64(5));
}

fn the_end_of_a_series_may_have_either_kind(store: &dyn Store) {
    let ids: Vec<SeriesId> = ["a", "b", "c"].map(|name| device(store, name)).into();
    for ts in 0..300_i64 {
        let number = |is_float| if is_float { Value::F64(ts as f64) } else { Value::I64(ts) };
        append(store, ids[0], &[(ts, &[("n", number(ts < 150))])]);
        append(store, ids[1], &[(ts, &[("n", number(ts >= 150))])]);
        let silent = if ts < 20 { ("n", number(ts % 2 == 0)) } else { ("other", Value::Bool(true)) };
        append(store, ids[2], &[(ts, &[silent])]);
    }
    let snapshot = snapshot(store);
    let schema = snapshot.columns().schema();
    let index = |name| schema.index_of(name).expect("a column");
    for (order, expected) in [(Order::Descending, [299.0, 299.0, 19.0]), (Order::Ascending, [0.0; 3])] {
        let read = TableRead {
            columns: vec![index("device"), index("ts"), index("n")],
            order: ReadOrder::LastRow(order),
            ..read_all(snapshot.as_ref())
        };
        let mut rows = collect_table(snapshot.as_ref(), &read).expect("a read").concat();
        rows.retain(|row| row[2].is_some());
        let micros = |row: &TableRow| match row[1] {
            Some(Value::I64(ts)) => ts,
            _ => panic!("each row has a time"),
        };
        rows.sort_by_key(|row| (format!("{:?}", row[0]), micros(row)));
        let ends: Vec<_> = rows
            .chunk_by(|a, b| a[0] == b[0])
            .map(|rows| match order {
                Order::Descending => rows[rows.len() - 1][2].clone(),
                Order::Ascending => rows[0][2].clone(),
            })
            .collect();
        assert_eq!(ends, expected.map(float), "{order:?}");
    }
}

fn many_rows_of_both_kinds_come_back(store: &dyn Store) {
    let ids: Vec<SeriesId> = (0..5).map(|n| device(store, &n.to_string())).collect();
    // Runs of one kind, rows in turn, rows written again as the other kind.
    let is_float = |n: i64| (n / 40) % 2 == 0 || n % 3 == 0;
    let number = |n: i64, is_float| if is_float { Value::F64(n as f64 / 4.0) } else { Value::I64(n) };
    let rows = 200_i64;
    for n in 0..rows {
        let id = ids[n as usize % ids.len()];
        append(store, id, &[(n, &[("n", number(n, n % 5 == 0))])]);
    }
    for n in 0..rows {
        let id = ids[n as usize % ids.len()];
        append(store, id, &[(n, &[("n", number(n, is_float(n)))])]);
    }
    let snapshot = snapshot(store);
    let expected = |n: i64| {
        let exact = if is_float(n) { None } else { integer(n) };
        vec![integer(n), float(if is_float(n) { n as f64 / 4.0 } else { n as f64 }), exact]
    };
    for (order, readers_max, batch_rows) in [
        (ReadOrder::SeriesThenTime, 1, 1000),
        (ReadOrder::Time(Order::Ascending), 1, 7),
        (ReadOrder::Time(Order::Descending), 1, 64),
        (ReadOrder::Any, 3, 13),
    ] {
        let columns = ["ts", "n", "n:i64"].map(|name| snapshot.columns().schema().index_of(name));
        let columns = columns.into_iter().collect::<Result<_, _>>().expect("the columns");
        let read = TableRead { columns, order, readers_max, batch_rows, ..read_all(snapshot.as_ref()) };
        let mut found = collect_table(snapshot.as_ref(), &read).expect("a read").concat();
        let place = |row: &TableRow| match row[0] {
            Some(Value::I64(ts)) => ts,
            _ => panic!("each row has a time"),
        };
        match order {
            ReadOrder::Time(Order::Ascending) => assert!(found.is_sorted_by_key(place)),
            ReadOrder::Time(Order::Descending) => {
                assert!(found.iter().rev().is_sorted_by_key(place))
            }
            _ => {}
        }
        found.sort_by_key(place);
        assert_eq!(found, (0..rows).map(expected).collect::<Vec<_>>(), "{order:?}");
    }
    let types: Vec<FieldType> = snapshot.columns().fields.iter().map(|field| field.field_type).collect();
    assert_eq!(types, [FieldType::F64, FieldType::I64]);
}
