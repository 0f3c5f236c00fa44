//! Reads a history row by row: a row has all values that a device reported for one time.

use std::ops::{ControlFlow, Range};

use model::{SeriesId, limits};
use store::{Store, ValueColumn};

use super::block::{numbers, value_of};
use super::reduce::{HeldTextBytes, Reduction};
use super::request::{Aggregation, HistoryError, HistoryRequest, check, scan_of};
use super::sink::RowSink;

/// Reads the history of one series row by row; [`HistoryRequest::limit`] counts rows. After an error the caller must discard
/// what `sink` received.
pub fn read_rows_into(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl RowSink,
) -> Result<(), HistoryError> {
    match request.aggregation {
        _ if request.range.is_empty() => Ok(()),
        Aggregation::None => read_plain(store, series, request, sink),
        _ => {
            let reduction = Reduction::read(store, &[series], request, &HeldTextBytes::default())?;
            reduction.give_rows(&request.keys, request.order, sink);
            Ok(())
        }
    }
}

fn read_plain(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl RowSink,
) -> Result<(), HistoryError> {
    check("the limit of rows", request.limit as u64, "ask for less and page through the range")?;
    let keys = request.keys.len() as u64;
    let (mut left, mut values) = (request.limit, 0);
    if left == 0 {
        return Ok(());
    }
    store.scan_blocks(&scan_of(series, request, request.limit), &mut |block| {
        for rows in rows_with_values(block.times.len(), block.columns) {
            let rows = rows.start..rows.end.min(rows.start + left);
            left -= rows.len();
            values += rows.len() as u64 * keys;
            sink.rows(block.times, block.columns, rows)?;
            // The limit is exceeded by at most one run of rows.
            if left == 0 || values > limits::READ_ROWS_MAX as u64 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    check("the number of rows times that of keys", values, "ask for fewer keys or a smaller limit")
}

/// Runs of rows that have a value for some key.
fn rows_with_values(count: usize, columns: &[Vec<ValueColumn>]) -> Vec<Range<usize>> {
    if columns.iter().any(|columns| numbers(columns).is_some()) {
        return std::iter::once(0..count).collect();
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    let has_value = |row: &usize| columns.iter().any(|columns| value_of(columns, *row).is_some());
    for row in (0..count).filter(has_value) {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, TimeRange, Timestamp, Value, ValueRef};
    use store::{Durability, MemoryStore, Order, Writer};

    use super::super::request::Interval;
    use super::super::values::read;
    use super::*;

    type Row = (i64, Vec<Option<Value>>);

    #[derive(Default)]
    struct Seen(Vec<Row>);

    impl RowSink for Seen {
        fn rows(
            &mut self,
            times: &[i64],
            columns: &[Vec<ValueColumn>],
            rows: Range<usize>,
        ) -> ControlFlow<()> {
            for row in rows {
                let values: Vec<_> = columns.iter().map(|columns| value_of(columns, row)).collect();
                self.row(Timestamp::from_micros(times[row]), &values)?;
            }
            ControlFlow::Continue(())
        }

        fn row(&mut self, ts: Timestamp, values: &[Option<ValueRef<'_>>]) -> ControlFlow<()> {
            let values = values.iter().map(|value| value.map(|value| value.to_owned()));
            self.0.push((ts.micros(), values.collect()));
            ControlFlow::Continue(())
        }
    }

    /// `a` in every row, `b` in each second, `c` in each third as another type, other keys in each fifth alone.
    fn store() -> (MemoryStore, SeriesId) {
        let store = MemoryStore::new();
        let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for row in 0..30_i64 {
            if row % 5 == 4 {
                builder.field("other", ValueRef::I64(1));
            } else {
                if row % 5 != 3 {
                    builder.field("a", ValueRef::F64(row as f64));
                }
                if row % 2 == 0 {
                    builder.field("b", ValueRef::I64(row));
                }
                if row % 3 == 0 {
                    builder
                        .field("c", if row % 2 == 0 { ValueRef::F64(0.5) } else { ValueRef::String("odd") });
                }
            }
            builder.row(series, Timestamp::from_micros(row * 1_000));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
        (store, series)
    }

    fn rows(request: &HistoryRequest) -> Result<Vec<Row>, HistoryError> {
        let (store, series) = store();
        let mut seen = Seen::default();
        read_rows_into(&store, series, request, &mut seen).map(|()| seen.0)
    }

    fn request(keys: &[&str], aggregation: Aggregation, limit: usize, order: Order) -> HistoryRequest {
        HistoryRequest {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            range: TimeRange::new(Timestamp::from_micros(0), Timestamp::from_micros(30_000)),
            aggregation,
            interval: Interval::of_micros(10_000),
            limit,
            order,
        }
    }

    #[test]
    fn rows_have_the_same_values_as_lists_by_key() {
        let (store, series) = store();
        for order in [Order::Ascending, Order::Descending] {
            for aggregation in [Aggregation::None, Aggregation::Avg, Aggregation::Max, Aggregation::Count] {
                for keys in [&["a", "b", "c"][..], &["c"], &["absent", "b"], &["absent"], &[]] {
                    let request = request(keys, aggregation, 1_000, order);
                    let rows = rows(&request).unwrap();
                    assert!(rows.iter().all(|(_, values)| values.iter().any(Option::is_some)), "{rows:?}");
                    let is_ordered = rows.is_sorted_by(|one, next| match order {
                        Order::Ascending => one.0 < next.0,
                        Order::Descending => one.0 > next.0,
                    });
                    assert!(is_ordered, "{rows:?}");
                    for (number, (key, timed_values)) in
                        read(&store, series, &request).unwrap().iter().enumerate()
                    {
                        let of_rows = rows.iter().filter_map(|(ts, values)| {
                            Some((Timestamp::from_micros(*ts), values[number].clone()?))
                        });
                        assert_eq!(
                            of_rows.collect::<Vec<_>>(),
                            *timed_values,
                            "{key} {aggregation:?} {order:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_limit_counts_rows() {
        let seen = rows(&request(&["b", "c"], Aggregation::None, 3, Order::Ascending)).unwrap();
        assert_eq!(seen.iter().map(|(ts, _)| *ts).collect::<Vec<_>>(), [0, 2_000, 3_000]);
        assert!(rows(&request(&["b"], Aggregation::None, 0, Order::Ascending)).unwrap().is_empty());
        let over = rows(&request(&["b"], Aggregation::None, limits::READ_ROWS_MAX + 1, Order::Ascending));
        assert!(matches!(over, Err(HistoryError::OverLimit { .. })));
    }
}
