//! The sentences of the contract about whole tables.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use model::{FieldType, SeriesId, SeriesKey, TimeRange, Timestamp, Value};

use super::rows::{append, batch_of};
use crate::table::{COLUMN_KIND, COLUMN_NAME};
use crate::{
    Durability, Order, ReadOrder, SeriesSet, Store, StoreError, TableRead, TableSnapshot, TagMatcher,
    TagPredicate,
};

/// A row of a table that a check has read: the values of the requested columns. A time is an integer.
pub type TableRow = Vec<Option<Value>>;

/// All checks of this file.
pub(super) const CHECKS: [fn(&dyn Store); 10] = [
    tables_have_names_columns_and_counts,
    columns_show_merged_rows,
    a_projection_gives_the_asked_columns,
    series_and_time_are_selected,
    rows_come_in_the_order_asked_for,
    an_end_of_each_series_has_its_nearest_values,
    a_limit_and_a_batch_size_are_kept,
    matchers_select_series,
    a_snapshot_does_not_change,
    many_series_come_back_from_many_readers,
];

/// A read of all columns and rows with one reader, by series and time.
pub fn read_all(snapshot: &dyn TableSnapshot) -> TableRead {
    let columns = snapshot.columns();
    TableRead {
        columns: (0..columns.tags.len() + 1 + columns.fields.len()).collect(),
        series: None,
        range: TimeRange::ALL,
        order: ReadOrder::SeriesThenTime,
        limit: None,
        batch_rows: 1000,
        readers_max: 1,
        tag_runs: false,
    }
}

/// The rows of each reader of a read.
///
/// # Panics
/// When a batch breaks the contract.
pub fn collect_table(
    snapshot: &dyn TableSnapshot,
    read: &TableRead,
) -> Result<Vec<Vec<TableRow>>, StoreError> {
    let (schema, columns) = snapshot.columns().project(read)?;
    let kinds: Vec<Option<FieldType>> = columns
        .iter()
        .map(|column| match column {
            crate::Column::Field(field) => Some(field.field_type),
            _ => None,
        })
        .collect();
    let readers = snapshot.read(read)?;
    assert!(readers.len() <= read.readers_max.max(1), "{} readers", readers.len());
    let mut all = Vec::new();
    for mut reader in readers {
        let mut rows = Vec::new();
        while let Some(batch) = reader.next()? {
            assert_eq!(batch.schema(), schema);
            assert!((1..=read.batch_rows).contains(&batch.num_rows()), "{} rows", batch.num_rows());
            rows.extend((0..batch.num_rows()).map(|row| row_of(&batch, &kinds, row)));
        }
        assert!(reader.next()?.is_none(), "the end is the end");
        all.push(rows);
    }
    Ok(all)
}

fn row_of(batch: &RecordBatch, kinds: &[Option<FieldType>], row: usize) -> TableRow {
    let value = |(array, kind): (&arrow_array::ArrayRef, &Option<FieldType>)| {
        let (array, row) = match array.as_run_opt::<Int32Type>() {
            Some(runs) => (runs.values(), runs.get_physical_index(row)),
            None => (array, row),
        };
        if array.is_null(row) {
            return None;
        }
        Some(match (array.data_type(), kind) {
            (DataType::Boolean, _) => Value::Bool(array.as_boolean().value(row)),
            (DataType::Int64, _) => Value::I64(array.as_primitive::<Int64Type>().value(row)),
            (DataType::Float64, _) => Value::F64(array.as_primitive::<Float64Type>().value(row)),
            (DataType::Timestamp(..), _) => {
                Value::I64(array.as_primitive::<TimestampMicrosecondType>().value(row))
            }
            (DataType::Utf8View, Some(FieldType::Json)) => {
                Value::Json(array.as_string_view().value(row).to_owned())
            }
            (DataType::Utf8View, _) => Value::String(array.as_string_view().value(row).to_owned()),
            (other, _) => panic!("a column of type {other}"),
        })
    };
    batch.columns().iter().zip(kinds).map(value).collect()
}

/// The rows of all readers together.
fn rows(snapshot: &dyn TableSnapshot, read: &TableRead) -> Vec<TableRow> {
    collect_table(snapshot, read).expect("a read").concat()
}

fn snapshot(store: &dyn Store) -> std::sync::Arc<dyn TableSnapshot> {
    store.snapshot(&super::rows::table("telemetry")).expect("a snapshot").expect("the table")
}

fn series(store: &dyn Store, tags: &[(&str, &str)]) -> SeriesId {
    store.series(&SeriesKey::new("telemetry", tags).expect("valid names")).expect("a series")
}

fn int(n: i64) -> Option<Value> {
    Some(Value::I64(n))
}

fn text(text: &str) -> Option<Value> {
    Some(Value::String(text.into()))
}

fn range(start: i64, end: i64) -> TimeRange {
    TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
}

fn tables_have_names_columns_and_counts(store: &dyn Store) {
    assert_eq!(store.tables().expect("tables"), []);
    assert!(store.snapshot(&super::rows::table("telemetry")).expect("no table").is_none());
    let one = series(store, &[("device", "a"), ("speed", "fast")]);
    let empty = snapshot(store);
    assert_eq!((empty.rows_max(), empty.time_range()), (0, None));
    assert_eq!(empty.rows_within(TimeRange::ALL), 0);
    assert_eq!(rows(empty.as_ref(), &read_all(empty.as_ref())), Vec::<TableRow>::new());
    let fields = [
        ("speed", Value::I64(1)),
        ("ts", Value::F64(0.5)),
        ("speed", Value::Bool(true)),
        ("rpm", Value::Json("1".into())),
        ("rpm", Value::String("1".into())),
        ("__series", Value::Bool(true)),
        ("rpm:string:string", Value::Bool(true)),
    ];
    // A key that takes a sibling column's name before the sibling comes.
    append(store, one, &[(10, &[("rpm:string", Value::I64(0))])]);
    append(store, one, &[(10, &fields), (-5, &fields[..1]), (99, &[])]);
    let other = SeriesKey::new("other", &[]).expect("a valid name");
    append(store, store.series(&other).expect("a series"), &[(1, &[("x", Value::I64(1))])]);

    let tables = store.tables().expect("tables");
    let found: Vec<_> = tables.iter().map(|table| (table.table.name(), table.series)).collect();
    assert_eq!(found, [("other", 1), ("telemetry", 1)]);
    assert!(tables[1].rows >= 2);
    let holds = tables[1].time_range.expect("rows have times");
    assert!([-5, 10].iter().all(|ts| holds.contains(Timestamp::from_micros(*ts))), "{holds:?}");

    let snapshot = snapshot(store);
    let schema = snapshot.columns().schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let expected = [
        "device",
        "speed",
        "ts",
        "rpm:string",
        "speed:bool",
        "speed:i64",
        "ts:f64",
        "rpm:string:string",
        "rpm",
        "__series:bool",
        "rpm:string:string:bool",
    ];
    assert_eq!(names, expected);
    let describes = |index: usize| {
        let metadata = schema.field(index).metadata();
        (metadata[COLUMN_KIND].as_str(), metadata[COLUMN_NAME].as_str())
    };
    assert_eq!((describes(1), describes(2)), (("tag", "speed"), ("ts", "ts")));
    assert_eq!((describes(4), describes(7)), (("bool", "speed"), ("string", "rpm")));
    assert_eq!(*schema.field(2).data_type(), *crate::table::TS_TYPE);
    assert!(snapshot.rows_max() >= 2);
    let all = rows(snapshot.as_ref(), &read_all(snapshot.as_ref()));
    // A row without fields does not count.
    assert_eq!(all.len(), 2);
    assert_eq!(all[0][..6], [text("a"), text("fast"), int(-5), None, None, int(1)]);
    let beyond = TableRead { columns: vec![11], ..read_all(snapshot.as_ref()) };
    assert!(matches!(snapshot.read(&beyond).map(drop), Err(StoreError::OverLimit { .. })));
}

fn columns_show_merged_rows(store: &dyn Store) {
    let one = series(store, &[("device", "a")]);
    append(store, one, &[(1, &[("v", Value::I64(1)), ("w", Value::I64(1))]), (2, &[("v", Value::I64(2))])]);
    append(store, one, &[(1, &[("v", Value::String("one".into()))]), (3, &[("w", Value::I64(3))])]);
    append(
        store,
        one,
        &[(3, &[("v", Value::I64(3)), ("v", Value::String("three".into())), ("v", Value::I64(4))])],
    );
    append(store, one, &[(2, &[("w", Value::I64(2))])]);
    let snapshot = snapshot(store);
    let expected: [TableRow; 3] = [
        vec![text("a"), int(1), None, text("one"), int(1)],
        vec![text("a"), int(2), int(2), None, int(2)],
        vec![text("a"), int(3), int(4), None, int(3)],
    ];
    assert_eq!(rows(snapshot.as_ref(), &read_all(snapshot.as_ref())), expected);
    // A hidden value stays hidden when the column that hides it is not asked for.
    let column = TableRead { columns: vec![2], ..read_all(snapshot.as_ref()) };
    assert_eq!(rows(snapshot.as_ref(), &column), [[None], [int(2)], [int(4)]]);
    let other = TableRead { columns: vec![3], ..read_all(snapshot.as_ref()) };
    assert_eq!(rows(snapshot.as_ref(), &other), [[text("one")], [None], [None]]);
}

fn a_projection_gives_the_asked_columns(store: &dyn Store) {
    let (one, two) = (series(store, &[("device", "a")]), series(store, &[("site", "s")]));
    append(store, two, &[(1, &[("x", Value::F64(0.5))]), (2, &[("y", Value::Json("[]".into()))])]);
    append(store, one, &[(1, &[("y", Value::Json("{}".into()))])]);
    let snapshot = snapshot(store);
    let read = |columns: &[usize]| {
        let read = TableRead { columns: columns.to_vec(), ..read_all(snapshot.as_ref()) };
        rows(snapshot.as_ref(), &read)
    };
    assert_eq!(read(&[]), vec![TableRow::new(); 3]);
    assert_eq!(read(&[3]), [[None], [Some(Value::F64(0.5))], [None]]);
    let json = |text: &str| Some(Value::Json(text.into()));
    let expected: [TableRow; 3] = [
        vec![json("{}"), int(1), None, int(1), text("a")],
        vec![None, int(1), text("s"), int(1), None],
        vec![json("[]"), int(2), text("s"), int(2), None],
    ];
    assert_eq!(read(&[4, 2, 1, 2, 0]), expected);
}

fn series_and_time_are_selected(store: &dyn Store) {
    let ids: Vec<SeriesId> = ["a", "b", "c"].iter().map(|name| series(store, &[("device", name)])).collect();
    for ts in [4, 1, 3, i64::MIN] {
        for id in &ids {
            append(store, *id, &[(ts, &[("x", Value::I64(ts))])]);
        }
    }
    let snapshot = snapshot(store);
    let times = |series: Option<&[usize]>, range: TimeRange| {
        let series: Option<SeriesSet> =
            series.map(|series| series.iter().map(|index| ids[*index].0 as u32).collect());
        let read = TableRead { series, range, columns: vec![0, 1], ..read_all(snapshot.as_ref()) };
        let rows = rows(snapshot.as_ref(), &read);
        // A read without columns gives the same number of rows.
        let counted = TableRead { columns: Vec::new(), readers_max: 3, order: ReadOrder::Any, ..read };
        let counts = collect_table(snapshot.as_ref(), &counted).expect("a read");
        assert_eq!(counts.concat().len(), rows.len());
        let name = |value: &Option<Value>| match value {
            Some(Value::String(name)) => name.clone(),
            other => panic!("a name and not {other:?}"),
        };
        rows.iter().map(|row| (name(&row[0]), row[1].clone())).collect::<Vec<_>>()
    };
    let row = |name: &str, ts| (name.to_owned(), int(ts));
    assert_eq!(times(Some(&[1]), range(1, 4)), [row("b", 1), row("b", 3)]);
    assert_eq!(times(Some(&[2, 0]), range(4, 5)), [row("a", 4), row("c", 4)]);
    assert_eq!(times(None, range(3, 4)), [row("a", 3), row("b", 3), row("c", 3)]);
    assert_eq!(times(None, TimeRange::ALL).len(), 12);
    assert_eq!(times(Some(&[]), TimeRange::ALL), []);
    assert_eq!(times(None, range(4, 4)), []);
    assert_eq!(times(None, range(5, 99)), []);
    let whole = snapshot.time_range().expect("rows have times");
    assert_eq!(snapshot.rows_within(whole), snapshot.rows_max());
    assert_eq!(snapshot.rows_within(TimeRange::ALL), snapshot.rows_max());
    for (shorter, longer) in [(range(3, 4), range(3, 5)), (range(1, 5), range(i64::MIN, 5))] {
        let rows = [shorter, longer].map(|range| snapshot.rows_within(range));
        assert!(1 <= rows[0] && rows[0] <= rows[1] && rows[1] <= snapshot.rows_max(), "{rows:?}");
    }
    assert_eq!(snapshot.rows_within(range(4, 4)), 0);
    assert_eq!(snapshot.rows_within(range(5, 99)), 0);
    let nobody = TableRead { series: Some([77_777].into_iter().collect()), ..read_all(snapshot.as_ref()) };
    assert_eq!(rows(snapshot.as_ref(), &nobody), Vec::<TableRow>::new());
}

fn rows_come_in_the_order_asked_for(store: &dyn Store) {
    let ids: Vec<SeriesId> = (0..3).map(|n| series(store, &[("device", &n.to_string())])).collect();
    for n in [5, 2, 0, 1, 4, 3, 2] {
        let id = ids[n as usize % 3];
        append(store, id, &[(n / 2, &[("n", Value::I64(n))]), (n / 2 + 10, &[("n", Value::I64(n + 10))])]);
    }
    let snapshot = snapshot(store);
    let read = |order, readers_max, range| {
        let read = TableRead { columns: vec![2], order, readers_max, range, ..read_all(snapshot.as_ref()) };
        collect_table(snapshot.as_ref(), &read).expect("a read")
    };
    let numbers = |of: &[i64]| of.iter().map(|n| vec![int(*n)]).collect::<Vec<_>>();
    let sorted = |order| read(order, 1, TimeRange::ALL).concat();
    let by_series_then_time = numbers(&[0, 3, 10, 13, 1, 4, 11, 14, 2, 5, 12, 15]);
    assert_eq!(sorted(ReadOrder::SeriesThenTime), by_series_then_time);
    assert_eq!(
        sorted(ReadOrder::Time(Order::Ascending)),
        // Series numbers decide between rows of one time.
        numbers(&[0, 1, 3, 2, 4, 5, 10, 11, 13, 12, 14, 15])
    );
    assert_eq!(
        sorted(ReadOrder::Time(Order::Descending)),
        numbers(&[14, 15, 13, 12, 10, 11, 4, 5, 3, 2, 0, 1])
    );
    assert_eq!(
        read(ReadOrder::Time(Order::Descending), 1, range(1, 11)).concat(),
        numbers(&[10, 11, 4, 5, 3, 2])
    );
    let mut any = read(ReadOrder::Any, 4, TimeRange::ALL).concat();
    let mut expected = by_series_then_time;
    let number = |row: &TableRow| match row[0] {
        Some(Value::I64(n)) => n,
        _ => i64::MAX,
    };
    any.sort_by_key(number);
    expected.sort_by_key(number);
    assert_eq!(any, expected);
    let mut series_before = Vec::new();
    for rows in read(ReadOrder::SeriesThenTime, 4, TimeRange::ALL) {
        let places: Vec<(i64, i64)> = rows.iter().map(number).map(|n| (n % 10 % 3, n)).collect();
        let mut series: Vec<i64> = places.iter().map(|(series, _)| *series).collect();
        series.dedup();
        assert!(
            series.iter().all(|series| !series_before.contains(series)),
            "{series:?} after {series_before:?}"
        );
        series_before.extend(series);
        assert!(places.is_sorted_by_key(|(series, n)| (*series, n / 10, n % 10 / 2)), "{places:?}");
    }
    assert!(read(ReadOrder::Time(Order::Ascending), 4, TimeRange::ALL).len() <= 1);
}

fn an_end_of_each_series_has_its_nearest_values(store: &dyn Store) {
    let number = |n: i64| [("n", Value::I64(n))];
    let word = |n: i64| [("word", Value::String(n.to_string()))];
    // One that reports as the others, one that fell silent long ago, one whose end has no number, one without any, and one with
    // a wrong clock.
    let ids: Vec<SeriesId> = ["a", "b", "c", "d", "e"].map(|name| series(store, &[("device", name)])).into();
    for ts in 0..1_000 {
        append(store, ids[0], &[(ts, &number(ts))]);
        match ts {
            0..10 => append(store, ids[1], &[(ts, &number(ts))]),
            100..900 => append(store, ids[2], &[(ts, &number(ts))]),
            _ => append(store, ids[2], &[(ts, &word(ts))]),
        };
    }
    append(store, ids[3], &[(5, &word(5))]);
    for ts in [-90_000_000, 500, 90_000_000] {
        append(store, ids[4], &[(ts, &number(ts))]);
    }
    let snapshot = snapshot(store);
    let read = |order, series: Option<&[usize]>, range, readers_max, batch_rows| {
        let series = series.map(|series| series.iter().map(|index| ids[*index].0 as u32).collect());
        let order = ReadOrder::LastRow(order);
        let all = read_all(snapshot.as_ref());
        TableRead { columns: vec![0, 1, 2], series, range, order, readers_max, batch_rows, ..all }
    };
    // Of each series the time and the number nearest to the end.
    let nearest = |order, read: &TableRead| {
        let mut found: Vec<(TableRow, TableRow)> = Vec::new();
        let mut rows = rows(snapshot.as_ref(), read);
        let micros = |row: &TableRow| match row[1] {
            Some(Value::I64(ts)) => ts,
            _ => panic!("each row has a time"),
        };
        rows.sort_by_key(micros);
        if order == Order::Descending {
            rows.reverse();
        }
        rows.sort_by_key(|row| format!("{:?}", row[0]));
        assert!(rows.windows(2).all(|two| two[0] != two[1]), "each row comes once");
        for of_series in rows.chunk_by(|a, b| a[0] == b[0]) {
            let with_number = of_series.iter().find(|row| row[2].is_some());
            found.push((of_series[0].clone(), with_number.cloned().unwrap_or_default()));
        }
        found
    };
    let row = |name: &str, ts: i64| vec![text(name), int(ts), int(ts)];
    let silent = |name: &str, ts: i64| vec![text(name), int(ts), None];
    let same = |row: TableRow| (row.clone(), row);
    for (readers_max, batch_rows) in [(1, 1000), (3, 7)] {
        for (order, series, range, expected) in [
            (
                Order::Descending,
                None,
                TimeRange::ALL,
                vec![
                    same(row("a", 999)),
                    same(row("b", 9)),
                    (silent("c", 999), row("c", 899)),
                    (silent("d", 5), Vec::new()),
                    same(row("e", 90_000_000)),
                ],
            ),
            (
                Order::Ascending,
                None,
                TimeRange::ALL,
                vec![
                    same(row("a", 0)),
                    same(row("b", 0)),
                    (silent("c", 10), row("c", 100)),
                    (silent("d", 5), Vec::new()),
                    same(row("e", -90_000_000)),
                ],
            ),
            (
                Order::Descending,
                Some(&[0, 2][..]),
                range(5, 500),
                vec![same(row("a", 499)), same(row("c", 499))],
            ),
            (
                Order::Ascending,
                Some(&[1, 2][..]),
                range(8, 50),
                vec![same(row("b", 8)), (silent("c", 10), Vec::new())],
            ),
            (Order::Descending, Some(&[1][..]), range(10, 2_000), Vec::new()),
        ] {
            let read = read(order, series, range, readers_max, batch_rows);
            assert_eq!(nearest(order, &read), expected, "{read:?}");
        }
    }
}

fn a_limit_and_a_batch_size_are_kept(store: &dyn Store) {
    let one = series(store, &[("device", "a")]);
    for ts in 0..50 {
        append(store, one, &[(ts, &[("n", Value::I64(ts))])]);
    }
    let snapshot = snapshot(store);
    for order in [
        ReadOrder::Any,
        ReadOrder::SeriesThenTime,
        ReadOrder::Time(Order::Ascending),
        ReadOrder::Time(Order::Descending),
    ] {
        for batch_rows in [1, 7, 50, 1000] {
            for limit in [0, 1, 7, 49, 50, 99] {
                let read = TableRead { order, limit: Some(limit), batch_rows, ..read_all(snapshot.as_ref()) };
                let found = rows(snapshot.as_ref(), &read);
                assert!(found.len() >= limit.min(50), "{order:?}: {} rows of {limit}", found.len());
                let first = found.iter().map(|row| row[1].clone()).take(limit);
                match order {
                    ReadOrder::Any => {}
                    ReadOrder::Time(Order::Descending) => {
                        assert!(first.eq((0..50).rev().map(int).take(limit)))
                    }
                    _ => assert!(first.eq((0..50).map(int).take(limit))),
                }
            }
        }
    }
}

fn matchers_select_series(store: &dyn Store) {
    let all: [&[(&str, &str)]; 4] =
        [&[("site", "north"), ("floor", "1")], &[("site", "south")], &[("site", "northwest")], &[]];
    let ids: Vec<SeriesId> = all.iter().map(|tags| series(store, tags)).collect();
    let other = SeriesKey::new("other", &[("site", "north")]).expect("valid names");
    store.series(&other).expect("a series");
    let snapshot = snapshot(store);
    let select = |conditions: &[(&str, TagPredicate)]| {
        let matchers: Vec<TagMatcher> = conditions
            .iter()
            .map(|(tag, predicate)| TagMatcher { tag: (*tag).to_owned(), predicate: predicate.clone() })
            .collect();
        let found = snapshot.select(&matchers).expect("a selection");
        let index =
            |id: u32| ids.iter().position(|known| known.0 == u64::from(id)).expect("a series of the table");
        let mut found: Vec<usize> = found.iter().map(index).collect();
        found.sort_unstable();
        found
    };
    let pattern = |pattern: &str| regex::Regex::new(pattern).expect("a pattern");
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    assert_eq!(select(&[]), [0, 1, 2, 3]);
    assert_eq!(select(&[("site", TagPredicate::Is("north".into()))]), [0]);
    assert_eq!(select(&[("site", TagPredicate::Is("east".into()))]), [0_usize; 0]);
    assert_eq!(select(&[("site", TagPredicate::IsNot("north".into()))]), [1, 2]);
    assert_eq!(select(&[("site", TagPredicate::OneOf(owned(&["south", "north", "x"])))]), [0, 1]);
    assert_eq!(select(&[("site", TagPredicate::OneOf(Vec::new()))]), [0_usize; 0]);
    assert_eq!(select(&[("site", TagPredicate::NoneOf(owned(&["south", "x"])))]), [0, 2]);
    assert_eq!(select(&[("site", TagPredicate::NoneOf(Vec::new()))]), [0, 1, 2]);
    assert_eq!(select(&[("site", TagPredicate::Matches(pattern("rth")))]), [0, 2]);
    assert_eq!(select(&[("site", TagPredicate::Matches(pattern("^north$")))]), [0]);
    assert_eq!(select(&[("site", TagPredicate::MatchesNot(pattern("west|south")))]), [0]);
    assert_eq!(select(&[("site", TagPredicate::Present)]), [0, 1, 2]);
    assert_eq!(select(&[("site", TagPredicate::Absent)]), [3]);
    assert_eq!(select(&[("floor", TagPredicate::Absent), ("site", TagPredicate::Present)]), [1, 2]);
    assert_eq!(select(&[("never", TagPredicate::Absent)]), [0, 1, 2, 3]);
    assert_eq!(select(&[("never", TagPredicate::IsNot("x".into()))]), [0_usize; 0]);
}

fn a_snapshot_does_not_change(store: &dyn Store) {
    let one = series(store, &[("device", "a")]);
    append(store, one, &[(1, &[("x", Value::I64(1))]), (2, &[("x", Value::I64(2))])]);
    let before = snapshot(store);
    let mut readers = before.read(&read_all(before.as_ref())).expect("readers");
    append(
        store,
        one,
        &[(2, &[("x", Value::I64(3)), ("y", Value::Bool(true))]), (0, &[("x", Value::I64(0))])],
    );
    append(store, series(store, &[("site", "s")]), &[(1, &[("x", Value::I64(4))])]);
    let old: [TableRow; 2] = [vec![text("a"), int(1), int(1)], vec![text("a"), int(2), int(2)]];
    assert_eq!(rows(before.as_ref(), &read_all(before.as_ref())), old);
    let mut counted = 0;
    for reader in &mut readers {
        while let Some(batch) = reader.next().expect("a batch") {
            assert_eq!(batch.num_columns(), 3);
            counted += batch.num_rows();
        }
    }
    assert_eq!(counted, 2);
    let after = snapshot(store);
    let yes = Some(Value::Bool(true));
    let new: [TableRow; 4] = [
        vec![text("a"), None, int(0), int(0), None],
        vec![text("a"), None, int(1), int(1), None],
        vec![text("a"), None, int(2), int(3), yes],
        vec![None, text("s"), int(1), int(4), None],
    ];
    assert_eq!(rows(after.as_ref(), &read_all(after.as_ref())), new);
}

fn many_series_come_back_from_many_readers(store: &dyn Store) {
    const SERIES: usize = 40;
    let name = |n: usize| format!("a device with a name that is long enough not to be kept inline {n}");
    let ids: Vec<SeriesId> = (0..SERIES).map(|n| series(store, &[("device", &name(n))])).collect();
    for round in 0..12_i64 {
        for (n, id) in ids.iter().enumerate() {
            let value = Value::I64(round * 1000 + n as i64);
            let rows = batch_of(*id, &[(round % 8, &[("n", value)])]);
            store.append(&rows, Durability::Memory).expect("room");
        }
    }
    let snapshot = snapshot(store);
    let mut expected: Vec<TableRow> = Vec::new();
    for n in 0..SERIES {
        // Rounds 8 to 11 wrote the first four times again.
        let newest = |ts: i64| if ts < 4 { ts + 8 } else { ts };
        expected.extend((0..8).map(|ts| vec![text(&name(n)), int(ts), int(newest(ts) * 1000 + n as i64)]));
    }
    for order in [ReadOrder::Any, ReadOrder::SeriesThenTime] {
        for (readers_max, batch_rows, tag_runs) in
            [(1, 1000, false), (1, 1000, true), (3, 7, true), (16, 100, false)]
        {
            let read = TableRead { order, readers_max, batch_rows, tag_runs, ..read_all(snapshot.as_ref()) };
            let mut found = rows(snapshot.as_ref(), &read);
            let place = |row: &TableRow| expected.iter().position(|expected| expected == row);
            found.sort_by_key(place);
            assert_eq!(found, expected, "{order:?} {readers_max}");
        }
    }
}
