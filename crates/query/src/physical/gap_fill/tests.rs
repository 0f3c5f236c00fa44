//! Gap filling compared with a simple model, for random rows in random batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use model::{TimeRange, Timestamp};

use super::filling::Filling;
use crate::gapfill::{Buckets, Fill, Shape};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Keys, time, count, carried and line.
type Row = (Option<String>, Option<i64>, Option<i64>, Option<i64>, Option<f64>);

const WIDTH_US: i64 = 10;
const RANGE: (i64, i64) = (100, 200);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("device", DataType::Utf8View, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("count", DataType::Int64, true),
        Field::new("carried", DataType::Int64, true),
        Field::new("line", DataType::Float64, true),
    ]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0.as_deref()).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.3).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.4).collect::<Float64Array>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let (device, t) = (batch.column(0).as_string_view(), batch.column(1));
    let t = t.as_primitive::<TimestampMicrosecondType>();
    let numbers = |index: usize| batch.column(index).as_primitive::<Int64Type>();
    let line = batch.column(4).as_primitive::<Float64Type>();
    let row = |row: usize| {
        let number = |index: usize| numbers(index).is_valid(row).then(|| numbers(index).value(row));
        let text = device.is_valid(row).then(|| device.value(row).to_owned());
        let time = t.is_valid(row).then(|| t.value(row));
        (text, time, number(2), number(3), line.is_valid(row).then(|| line.value(row)))
    };
    (0..batch.num_rows()).map(row).collect()
}

fn shape(keys: Vec<usize>) -> Arc<Shape> {
    let width = IntervalMonthDayNano { months: 0, days: 0, nanoseconds: WIDTH_US * 1_000 };
    let range = TimeRange::new(Timestamp::from_micros(RANGE.0), Timestamp::from_micros(RANGE.1));
    let buckets = Buckets::over(range, width, 0, "f").unwrap();
    Arc::new(Shape { keys, time: 1, fills: vec![(3, Fill::Carry), (4, Fill::Line)], buckets })
}

/// The groups in order, NULL last, and now and then a bucket outside of the range or without a time.
fn groups(dice: &mut Dice, has_keys: bool) -> Vec<Vec<Row>> {
    let names: &[Option<&str>] =
        if has_keys { &[Some("a"), Some("a very long name indeed"), Some("c"), None] } else { &[None] };
    let mut groups = Vec::new();
    for name in names {
        let density = 1 + dice.below(6);
        let mut rows = Vec::new();
        for bucket in 8..22 {
            if dice.below(6) < density {
                let mut maybe = |value: i64| (dice.below(3) > 0).then_some(value);
                let (carried, line) = (maybe(bucket), maybe(bucket * bucket));
                let time = Some(bucket * WIDTH_US);
                rows.push((name.map(str::to_owned), time, Some(1), carried, line.map(|line| line as f64)));
            }
        }
        if dice.below(4) == 0 {
            rows.push((name.map(str::to_owned), None, Some(7), None, None));
        }
        if !rows.is_empty() {
            groups.push(rows);
        }
    }
    groups
}

/// The expected rows, computed from all input rows at once.
fn model(groups: &[Vec<Row>], has_keys: bool) -> Vec<Row> {
    let mut expected = Vec::new();
    let nothing = vec![Vec::new()];
    let groups = if groups.is_empty() && !has_keys { &nothing } else { groups };
    for group in groups {
        let name = group.first().and_then(|row| row.0.clone());
        let timed = group.iter().filter_map(|row| Some((row.1?, row.clone())));
        let known: BTreeMap<i64, Row> = timed.collect();
        let mut all = known.clone();
        for time in (RANGE.0..RANGE.1).step_by(WIDTH_US as usize) {
            all.entry(time).or_insert((name.clone(), Some(time), None, None, None));
        }
        for (time, row) in all {
            let carried = known.range(..=time).rev().find_map(|(_, row)| row.3);
            let before = known.range(..=time).rev().find_map(|(time, row)| Some((*time as f64, row.4?)));
            let after = known.range(time..).find_map(|(time, row)| Some((*time as f64, row.4?)));
            let line = row.4.or_else(|| {
                let ((from, low), (to, high)) = (before?, after?);
                Some(low + (high - low) * (time as f64 - from) / (to - from))
            });
            expected.push((row.0, row.1, row.2, carried, line));
        }
        let last = known.values().rev().find_map(|row| row.3);
        let untimed = group.iter().filter(|row| row.1.is_none());
        expected.extend(untimed.map(|row| (row.0.clone(), None, row.2, row.3.or(last), row.4)));
    }
    expected
}

/// Pushes the rows in pieces and collects the output; its batches have the requested size.
fn fill(shape: &Arc<Shape>, input: &[Row], rows_max: usize, mut piece: impl FnMut() -> usize) -> Vec<Row> {
    let mut filling = Filling::new(Arc::clone(shape), schema(), rows_max);
    let mut found = Vec::new();
    let mut given = |filling: &mut Filling| {
        while let Some(batch) = filling.next().unwrap() {
            assert!((1..=rows_max).contains(&batch.num_rows()));
            found.extend(rows(&batch));
        }
    };
    let mut rest = input;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece().min(rest.len()));
        filling.push(batch(now)).unwrap();
        given(&mut filling);
        rest = later;
    }
    assert!(!filling.is_over());
    filling.finish().unwrap();
    given(&mut filling);
    assert!(filling.is_over());
    found
}

#[test]
fn rows_in_any_pieces_give_the_rows_of_the_model() {
    let mut dice = Dice(42);
    let (mut made, mut lines) = (0, 0);
    for round in 0..2_000 {
        let has_keys = round % 3 > 0;
        let shape = shape(if has_keys { vec![0] } else { Vec::new() });
        let groups = groups(&mut dice, has_keys);
        let input: Vec<Row> = groups.concat();
        let rows_max = 1 + dice.below(30) as usize;
        let found = fill(&shape, &input, rows_max, || 1 + dice.below(12) as usize);
        // Without keys the column is filled like any other column.
        assert_eq!(found, model(&groups, has_keys), "round {round}: {input:?}");
        made += found.len() - input.len();
        lines += found.iter().filter(|row| row.2.is_none() && row.4.is_some()).count();
    }
    assert!(made > 10_000 && lines > 1_000, "{made} rows made, {lines} of them on lines");
}

#[test]
fn few_rows_wait_for_the_end_of_a_line() {
    let shape = shape(vec![0]);
    let mut filling = Filling::new(Arc::clone(&shape), schema(), 1_000);
    let name = || Some("a".to_owned());
    // Each batch has a value, so no more than its rows after the value wait.
    let mut waiting = Vec::new();
    for bucket in 0..200 {
        let row = |offset: i64, line| (name(), Some(bucket * 30 + offset), Some(1), Some(1), line);
        filling.push(batch(&[row(0, None), row(10, Some(1.0)), row(20, None)])).unwrap();
        while filling.next().unwrap().is_some() {}
        waiting.push(filling.held_bytes());
    }
    assert!(waiting[199] <= waiting[1] * 2, "{waiting:?}");
}
