//! Random reads of the whole table: they give the rows of the reference, in the requested order.

use std::collections::BTreeMap;

use model::{FieldType, TimeRange, Timestamp, Value};
use proptest::prelude::*;
use store::conformance;
use store::conformance::{TableRow, collect_table};
use store::{Column, Order, ReadOrder, SeriesSet, Store, TableRead, TableSnapshot};

use super::{DEVICES, key};

/// A read without numbers of series and columns, because these differ between the stores.
#[derive(Debug, Clone)]
pub(super) struct TableAction {
    /// By key and type, a bit each.
    fields: u32,
    devices: Option<u8>,
    range: Option<(i64, i64)>,
    order: ReadOrder,
    limit: Option<usize>,
    batch_rows: usize,
    readers_max: usize,
    tag_runs: bool,
    /// Whether the test compares numbers whatever columns show them.
    numbers_joined: bool,
}

pub(super) fn read() -> impl Strategy<Value = TableAction> {
    let orders = vec![
        ReadOrder::Any,
        ReadOrder::SeriesThenTime,
        ReadOrder::Time(Order::Ascending),
        ReadOrder::Time(Order::Descending),
        ReadOrder::LastRow(Order::Ascending),
        ReadOrder::LastRow(Order::Descending),
    ];
    let range = prop::option::of((-5..20_i64, 0..25_i64));
    let what = (any::<u32>(), prop::option::of(0..1_u8 << DEVICES), range);
    let limit = prop::option::of(0..9_usize);
    let how = (prop::sample::select(orders), limit, 1..20_usize, 1..4_usize, any::<bool>());
    (what, how).prop_map(|((fields, devices, range), how)| {
        let (order, limit, batch_rows, readers_max, tag_runs) = how;
        let numbers_joined = false;
        TableAction {
            fields,
            devices,
            range,
            order,
            limit,
            batch_rows,
            readers_max,
            tag_runs,
            numbers_joined,
        }
    })
}

/// Device, time and the values by key and type.
type Row = (String, i64, BTreeMap<(String, FieldType), Value>);

impl TableAction {
    fn read(&self, store: &dyn Store, columns: Vec<usize>) -> TableRead {
        let wanted = |device: &u8| self.devices.is_some_and(|devices| devices & 1 << device != 0);
        let number = |device| Some(store.find_series(&key(device))?.0 as u32);
        let chosen: SeriesSet = (0..DEVICES).filter(wanted).filter_map(number).collect();
        let at = Timestamp::from_micros;
        TableRead {
            columns,
            series: self.devices.map(|_| chosen),
            range: self.range.map_or(TimeRange::ALL, |(from, to)| TimeRange::new(at(from), at(to))),
            order: self.order,
            limit: self.limit,
            batch_rows: self.batch_rows,
            readers_max: self.readers_max,
            tag_runs: self.tag_runs,
        }
    }

    /// The rows that each reader gives.
    fn rows(&self, store: &dyn Store, limit: Option<usize>) -> Vec<Vec<Row>> {
        let Some(snapshot) = store.snapshot(&conformance::table("t")).unwrap() else { return Vec::new() };
        let (columns, names) = self.columns(snapshot.as_ref());
        let read = TableRead { limit, ..self.read(store, columns) };
        let row = |values: TableRow| {
            let mut values = values.into_iter();
            let (Some(Some(Value::String(device))), Some(Some(Value::I64(ts)))) =
                (values.next(), values.next())
            else {
                panic!("each row has a device and a time");
            };
            let fields = names.iter().cloned().zip(values).filter_map(|(name, value)| Some((name, value?)));
            let mut fields = fields.collect();
            if self.numbers_joined {
                join_numbers(&mut fields);
            }
            (device, ts, fields)
        };
        let readers = collect_table(snapshot.as_ref(), &read).unwrap();
        readers.into_iter().map(|rows| rows.into_iter().map(row).collect()).collect()
    }

    /// The device, the time and the chosen fields, and the kinds of the fields.
    fn columns(&self, snapshot: &dyn TableSnapshot) -> (Vec<usize>, Vec<(String, FieldType)>) {
        let columns = snapshot.columns();
        let (mut chosen, mut names) = (vec![0, columns.ts_index()], Vec::new());
        for index in 0.. {
            match columns.column(index) {
                None => break,
                Some(Column::Tag(_) | Column::Ts) => {}
                Some(Column::Field(field)) => {
                    // A power cut that tears a gap into the log destroys names. A stand-in has no rows.
                    let Some(key) = super::KEYS.iter().position(|key| *key == &*field.key) else { continue };
                    let chosen_by = match field.field_type {
                        FieldType::I64 if self.numbers_joined => FieldType::F64,
                        of => of,
                    };
                    if self.fields & 1 << (key * FieldType::ALL.len() + chosen_by.code() as usize - 1) != 0 {
                        chosen.push(index);
                        names.push((field.key.to_string(), field.field_type));
                    }
                }
            }
        }
        (chosen, names)
    }

    pub(super) fn compare(&self, ours: &dyn Store, reference: &dyn Store) {
        // After a power cut the reference does not have columns whose values are lost.
        let numbers_joined = numbers_shown(ours) != numbers_shown(reference);
        Self { numbers_joined, ..self.clone() }.compare_rows(ours, reference);
    }

    fn compare_rows(&self, ours: &dyn Store, reference: &dyn Store) {
        if let ReadOrder::LastRow(_) = self.order {
            return self.compare_ends(ours, reference);
        }
        let expected = sorted(self.rows(reference, None).concat());
        let readers = self.rows(ours, None);
        readers.iter().for_each(|rows| self.check_order(rows));
        assert_eq!(sorted(readers.concat()), expected, "{self:?}");
        self.compare_counts(ours, expected.len());
        let Some(limit) = self.limit else { return };
        let limited = self.rows(ours, self.limit).concat();
        assert!(limited.len() >= limit.min(expected.len()), "{self:?}");
        let times = |rows: &[Row]| rows.iter().take(limit).map(|(_, ts, _)| *ts).collect::<Vec<_>>();
        if let ReadOrder::Time(_) = self.order {
            assert_eq!(times(&limited), times(&self.rows(reference, None).concat()), "{self:?}");
        }
        for row in limited {
            assert!(expected.binary_search_by(|known| place(known).cmp(&place(&row))).is_ok(), "{row:?}");
        }
    }

    /// Checks that the read gives at least the required rows, which are those of the reference, and each at most once.
    fn compare_ends(&self, ours: &dyn Store, reference: &dyn Store) {
        let needed = sorted(self.rows(reference, None).concat());
        let all = Self { order: ReadOrder::Any, ..self.clone() };
        let all = sorted(all.rows(reference, None).concat());
        let found = sorted(self.rows(ours, None).concat());
        let mut left = found.iter();
        assert!(
            needed.iter().all(|row| left.any(|found| found == row)),
            "{self:?}: {found:?} not {needed:?}"
        );
        let mut left = all.iter();
        assert!(found.iter().all(|row| left.any(|known| known == row)), "{self:?}: {found:?} of {all:?}");
    }

    fn compare_counts(&self, ours: &dyn Store, expected: usize) {
        let Some(snapshot) = ours.snapshot(&conformance::table("t")).unwrap() else { return };
        let read = TableRead { limit: None, ..self.read(ours, Vec::new()) };
        assert_eq!(collect_table(snapshot.as_ref(), &read).unwrap().concat().len(), expected, "{self:?}");
    }

    fn check_order(&self, rows: &[Row]) {
        match self.order {
            ReadOrder::Any | ReadOrder::LastRow(_) => {}
            ReadOrder::SeriesThenTime => {
                for of_device in rows.chunk_by(|a, b| a.0 == b.0) {
                    assert!(of_device.is_sorted_by_key(|(_, ts, _)| ts), "{self:?}: {rows:?}");
                }
                let mut devices: Vec<&String> = rows.iter().map(|(device, ..)| device).collect();
                devices.dedup();
                let runs = devices.len();
                devices.sort();
                devices.dedup();
                assert_eq!(devices.len(), runs, "{self:?}: {rows:?}");
            }
            ReadOrder::Time(Order::Ascending) => assert!(rows.is_sorted_by_key(|(_, ts, _)| ts), "{rows:?}"),
            ReadOrder::Time(Order::Descending) => {
                assert!(rows.is_sorted_by_key(|(_, ts, _)| std::cmp::Reverse(ts)), "{rows:?}");
            }
        }
    }
}

/// The columns that show the numbers of each key.
fn numbers_shown(store: &dyn Store) -> Vec<(String, FieldType, bool)> {
    let Some(snapshot) = store.snapshot(&conformance::table("t")).unwrap() else { return Vec::new() };
    let is_number = |of: FieldType| matches!(of, FieldType::I64 | FieldType::F64);
    let fields = snapshot.columns().fields.iter().filter(|field| is_number(field.field_type));
    let mut shown: Vec<_> =
        fields.map(|field| (field.key.to_string(), field.field_type, field.with_integers)).collect();
    shown.sort();
    shown
}

/// Keeps only the exact integer where both columns of a key show it.
fn join_numbers(fields: &mut BTreeMap<(String, FieldType), Value>) {
    for key in super::KEYS {
        let column = |of| (key.to_owned(), of);
        if let Some(Value::I64(integer)) = fields.get(&column(FieldType::I64)) {
            let nearest = Value::F64(*integer as f64);
            let shown = fields.remove(&column(FieldType::F64));
            assert!(shown.as_ref().is_none_or(|shown| *shown == nearest), "{shown:?} is not {nearest:?}");
        }
    }
}

fn place(row: &Row) -> (&str, i64) {
    (&row.0, row.1)
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| place(a).cmp(&place(b)));
    rows
}
