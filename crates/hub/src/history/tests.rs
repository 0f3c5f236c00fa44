use model::{Batch, SeriesId, SeriesKey, TimeRange, Timestamp, Value, ValueRef};
use store::memory::MemoryStore;
use store::{Durability, Order, Store, Writer};

use super::values::Collected;
use super::*;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// One series with the given rows of one key.
fn store_with(rows: &[(i64, ValueRef<'_>)]) -> (MemoryStore, SeriesId) {
    let store = MemoryStore::new();
    let series = store.series(&SeriesKey::device("telemetry", "car").unwrap()).unwrap();
    let mut batch = Batch::new();
    for (ts, value) in rows {
        let mut row = batch.builder();
        row.field("k", *value);
        row.row(series, at(*ts));
        row.finish();
    }
    store.append(&batch, Durability::Fsync).unwrap();
    (store, series)
}

fn request(aggregation: Aggregation, interval_us: i64) -> HistoryRequest {
    HistoryRequest {
        keys: vec!["k".into()],
        range: TimeRange::new(at(0), at(100)),
        aggregation,
        interval: Interval::of_micros(interval_us),
        limit: 100,
        order: Order::Ascending,
    }
}

fn read_one(rows: &[(i64, ValueRef<'_>)], request: &HistoryRequest) -> Vec<(i64, Value)> {
    let (store, series) = store_with(rows);
    let history = read(&store, series, request).unwrap();
    assert_eq!(history.len(), 1);
    history[0].1.iter().map(|(ts, value)| (ts.micros(), value.clone())).collect()
}

const INTS: [(i64, ValueRef<'_>); 4] =
    [(1, ValueRef::I64(5)), (9, ValueRef::I64(3)), (10, ValueRef::I64(7)), (35, ValueRef::I64(1))];

#[test]
fn each_interval_becomes_one_value_in_its_middle_and_empty_ones_are_left_out() {
    let sums = read_one(&INTS, &request(Aggregation::Sum, 10));
    assert_eq!(sums, [(5, Value::I64(8)), (15, Value::I64(7)), (35, Value::I64(1))]);
    let counts = read_one(&INTS, &request(Aggregation::Count, 10));
    assert_eq!(counts, [(5, Value::I64(2)), (15, Value::I64(1)), (35, Value::I64(1))]);
    let means = read_one(&INTS, &request(Aggregation::Avg, 20));
    assert_eq!(means, [(10, Value::F64(5.0)), (30, Value::F64(1.0))]);
}

#[test]
fn without_an_interval_the_whole_range_is_one() {
    assert_eq!(read_one(&INTS, &request(Aggregation::Min, 0)), [(50, Value::I64(1))]);
    assert_eq!(read_one(&INTS, &request(Aggregation::Max, 0)), [(50, Value::I64(7))]);
    assert_eq!(read_one(&INTS, &request(Aggregation::Count, i64::MAX)), [(50, Value::I64(4))]);
}

#[test]
fn the_last_interval_ends_with_the_range() {
    let request = HistoryRequest { range: TimeRange::new(at(0), at(36)), ..request(Aggregation::Count, 30) };
    assert_eq!(read_one(&INTS, &request), [(15, Value::I64(3)), (33, Value::I64(1))]);
}

#[test]
fn newest_first_gives_the_same_intervals_in_reverse() {
    let request = HistoryRequest { order: Order::Descending, ..request(Aggregation::Sum, 10) };
    assert_eq!(read_one(&INTS, &request), [(35, Value::I64(1)), (15, Value::I64(7)), (5, Value::I64(8))]);
}

#[test]
fn sums_stay_integers_until_they_no_longer_fit() {
    let big = [(1, ValueRef::I64(i64::MAX)), (2, ValueRef::I64(1))];
    assert_eq!(read_one(&big, &request(Aggregation::Sum, 0)), [(50, Value::F64(i64::MAX as f64 + 1.0))]);
    let mixed = [(1, ValueRef::I64(1)), (2, ValueRef::F64(0.5)), (3, ValueRef::I64(2))];
    assert_eq!(read_one(&mixed, &request(Aggregation::Sum, 0)), [(50, Value::F64(3.5))]);
}

#[test]
fn values_without_order_or_sum_are_only_counted() {
    let rows = [(1, ValueRef::Bool(true)), (2, ValueRef::Json("[1]"))];
    assert_eq!(read_one(&rows, &request(Aggregation::Count, 0)), [(50, Value::I64(2))]);
    for aggregation in [Aggregation::Sum, Aggregation::Avg, Aggregation::Min, Aggregation::Max] {
        assert!(read_one(&rows, &request(aggregation, 0)).is_empty(), "{aggregation:?}");
    }
    let texts = [(1, ValueRef::String("b")), (2, ValueRef::String("a"))];
    assert_eq!(read_one(&texts, &request(Aggregation::Min, 0)), [(50, Value::String("a".into()))]);
}

#[test]
fn plain_reads_stop_at_the_limit_of_each_key() {
    let two = HistoryRequest { limit: 2, ..request(Aggregation::None, 0) };
    assert_eq!(read_one(&INTS, &two), [(1, Value::I64(5)), (9, Value::I64(3))]);
    let newest = HistoryRequest { order: Order::Descending, ..two };
    assert_eq!(read_one(&INTS, &newest), [(35, Value::I64(1)), (10, Value::I64(7))]);
}

#[test]
fn an_empty_range_has_an_empty_answer_for_every_key() {
    let (store, series) = store_with(&INTS);
    let keys = vec!["k".to_owned(), "other".to_owned()];
    let request =
        HistoryRequest { keys, range: TimeRange::new(at(5), at(5)), ..request(Aggregation::Sum, 1) };
    let history = read(&store, series, &request).unwrap();
    assert_eq!(history, [("k".to_owned(), vec![]), ("other".to_owned(), vec![])]);
}

#[test]
fn requests_that_would_not_fit_into_memory_are_refused_with_a_remedy() {
    let (store, series) = store_with(&INTS);
    let range = TimeRange::new(at(0), at(10_000_000));
    let fine = HistoryRequest { range, ..request(Aggregation::Avg, 1) };
    assert!(read(&store, series, &fine).unwrap_err().to_string().contains("longer interval"));
    let much = HistoryRequest { limit: 2_000_000, ..request(Aggregation::None, 0) };
    assert!(read(&store, series, &much).unwrap_err().to_string().contains("the limit is 1000000"));
}

#[test]
fn more_intervals_than_can_be_counted_are_over_the_limit() {
    let (store, series) = store_with(&INTS);
    let keys = vec!["k".into(); 4];
    let request = HistoryRequest { keys, range: TimeRange::ALL, ..request(Aggregation::Count, 1) };
    let refused = read(&store, series, &request).unwrap_err();
    assert!(refused.to_string().starts_with("the number of intervals over all keys"), "{refused}");
}

/// A hundred rows of all types with gaps of all lengths; their numbers can be summed in any order without loss.
fn mixed_rows() -> Vec<(i64, Value)> {
    let text = |row: i64| Value::String(format!("text {}", row % 7));
    let value = |row: i64| match row % 11 {
        0 | 4 => Value::I64(row - 50),
        1 => text(row),
        2 => Value::Bool(true),
        _ => Value::F64(row as f64 / 4.0),
    };
    // A stretch of integers alone, and one of text.
    let of = |row: i64| match row {
        30..40 => Value::I64(row),
        60..70 => text(row),
        _ => value(row),
    };
    (0..100).map(|row| (row * row % 7_919, of(row))).collect()
}

/// The rows, spread over the given number of series.
fn dealt(rows: &[(i64, Value)], count: usize) -> (MemoryStore, Vec<SeriesId>) {
    let store = MemoryStore::new();
    let series: Vec<SeriesId> = (0..count)
        .map(|number| {
            store.series(&SeriesKey::device("telemetry", &format!("car-{number}")).unwrap()).unwrap()
        })
        .collect();
    let mut batch = Batch::new();
    for (number, (ts, value)) in rows.iter().enumerate() {
        let mut row = batch.builder();
        row.field("k", value.as_ref());
        row.row(series[number * 7 % 13 % count], at(*ts));
        row.finish();
    }
    store.append(&batch, Durability::Fsync).unwrap();
    (store, series)
}

fn reduced(
    store: &dyn Store,
    series: &[SeriesId],
    request: &HistoryRequest,
) -> Result<Reduction, HistoryError> {
    Reduction::read(store, series, request, &HeldTextBytes::default())
}

fn given(reduction: Reduction, order: Order) -> Vec<TimedValue> {
    let mut collected = Collected(vec![Vec::new()]);
    reduction.give(order, &mut collected);
    collected.0.remove(0)
}

#[test]
fn several_series_reduce_like_one_with_all_their_rows() {
    let rows = mixed_rows();
    let (store, all) = dealt(&rows, 1);
    for aggregation in
        [Aggregation::Min, Aggregation::Max, Aggregation::Avg, Aggregation::Sum, Aggregation::Count]
    {
        for (interval_us, order) in [
            (0, Order::Ascending),
            (1, Order::Descending),
            (37, Order::Ascending),
            (1_000, Order::Descending),
        ] {
            let range = TimeRange::new(at(0), at(7_919));
            let request = HistoryRequest { range, order, ..request(aggregation, interval_us) };
            let expected = read(&store, all[0], &request).unwrap().remove(0).1;
            assert!(!expected.is_empty());
            for count in [2, 5, 13] {
                let (store, series) = dealt(&rows, count);
                let together = reduced(&store, &series, &request).unwrap();
                assert_eq!(given(together, order), expected, "{aggregation:?} {interval_us} {count}");
                for share in 1..=count {
                    let merged = series
                        .chunks(share)
                        .map(|series| reduced(&store, series, &request).unwrap())
                        .reduce(|mut one, other| {
                            one.merge(other);
                            one
                        });
                    assert_eq!(
                        given(merged.unwrap(), order),
                        expected,
                        "{aggregation:?} {interval_us} {count} in shares of {share}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_series_and_an_empty_range_give_no_values() {
    let (store, series) = store_with(&INTS);
    let sums = request(Aggregation::Sum, 10);
    assert_eq!(given(reduced(&store, &[], &sums).unwrap(), Order::Ascending), []);
    let empty = HistoryRequest { range: TimeRange::new(at(5), at(5)), ..sums };
    assert_eq!(given(reduced(&store, &[series], &empty).unwrap(), Order::Ascending), []);
    assert!(check_intervals(&empty, 1_000_001).is_err(), "answers take memory even if they are empty");
    let million = HistoryRequest {
        range: TimeRange::new(at(0), at(1_000_000)),
        keys: vec!["k".into()],
        ..request(Aggregation::Avg, 1)
    };
    assert_eq!(check_intervals(&million, 1).unwrap(), 1_000_000);
    assert!(check_intervals(&million, 2).unwrap_err().to_string().contains("is 2000000"));
}

#[test]
fn texts_are_bounded_by_their_bytes_over_all_series_of_a_reduction() {
    let long = "x".repeat(60_000);
    let rows: Vec<_> = (0..100).map(|ts| (ts, ValueRef::String(&long))).collect();
    let (store, series) = store_with(&rows);
    let largest = request(Aggregation::Max, 1);
    let text = HeldTextBytes::default();
    // 6 MB each; a reduction may hold 64 MiB.
    let answers: Vec<_> =
        (0..12).map(|_| Reduction::read(&store, &[series], &largest, &text).is_ok()).collect();
    assert_eq!(answers, [[true; 11].as_slice(), &[false]].concat());
    let refused = Reduction::read(&store, &[series], &largest, &text).unwrap_err().to_string();
    assert!(refused.contains("the limit is 67108864; ask for fewer devices"), "{refused}");
    // One interval holds one text, however many rows it has.
    let text = HeldTextBytes::default();
    let whole = request(Aggregation::Max, 0);
    assert!((0..1_000).all(|_| Reduction::read(&store, &[series], &whole, &text).is_ok()));
}

/// They are JSON documents, because no number type of a column holds them.
#[test]
fn integers_beyond_64_bits_take_part() {
    let rows = [
        (1, ValueRef::Json("18446744073709551616")),
        (2, ValueRef::I64(i64::MAX)),
        (3, ValueRef::Json("-18446744073709551617")),
        (4, ValueRef::F64(0.5)),
        (5, ValueRef::Json("{\"n\":1}")),
        (6, ValueRef::Json("1e400")),
        (7, ValueRef::String("fast")),
    ];
    let one = |aggregation| read_one(&rows, &request(aggregation, 0));
    assert_eq!(one(Aggregation::Count), [(50, Value::I64(7))]);
    assert_eq!(one(Aggregation::Max), [(50, Value::Json("18446744073709551616".into()))]);
    assert_eq!(one(Aggregation::Min), [(50, Value::Json("-18446744073709551617".into()))]);
    let sum = 18_446_744_073_709_551_616.0 + i64::MAX as f64 - 18_446_744_073_709_551_616.0 + 0.5;
    assert_eq!(one(Aggregation::Sum), [(50, Value::F64(sum))]);
    assert_eq!(one(Aggregation::Avg), [(50, Value::F64(sum / 4.0))]);
    let integers = [(1, ValueRef::I64(1)), (2, ValueRef::Json("9223372036854775808"))];
    let summed = read_one(&integers, &request(Aggregation::Sum, 0));
    assert_eq!(summed, [(50, Value::F64(9_223_372_036_854_775_808.0))]);
}

#[test]
fn the_largest_number_is_found_without_rounding() {
    let large = 9_007_199_254_740_993;
    let rows = [(1, ValueRef::F64(9_007_199_254_740_992.0)), (2, ValueRef::I64(large))];
    assert_eq!(read_one(&rows, &request(Aggregation::Max, 0)), [(50, Value::I64(large))]);
    assert_eq!(read_one(&rows, &request(Aggregation::Min, 0)), [(50, rows[0].1.to_owned())]);
}
