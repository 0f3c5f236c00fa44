//! Rows of several devices from the store, in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use model::{SeriesId, TimeRange, Timestamp, Value};
use store::{Order, Scan, Store, StoreError};

use super::fields_read::FieldsRead;
use crate::limits::{REREAD_ROWS_FIRST, REREAD_ROWS_MAX, REREAD_ROWS_PER_DEVICE_MIN};

/// A row: its time, and the values of the fields that sensors read, with their numbers.
#[derive(Debug)]
pub(super) struct StoredRow {
    pub(super) ts: Timestamp,
    pub(super) values: Vec<(u16, Value)>,
}

/// The rows of one series from a time on.
#[derive(Debug)]
struct OfSeries {
    series: SeriesId,
    keys: Vec<String>,
    /// The number of the field of each key.
    numbers: Vec<Option<u16>>,
    range: TimeRange,
    rows: VecDeque<StoredRow>,
    /// Rows that were read at once the last time. A turn may end after a few rows, so the first read is small.
    read_at_once: usize,
    is_read: bool,
}

/// Reads the rows of several series, merged by their times. Of rows of one time, those of the first series come first.
pub(super) struct Reread<'s> {
    store: &'s dyn Store,
    series: Vec<OfSeries>,
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    rows_at_once: usize,
}

impl<'s> Reread<'s> {
    /// The rows of some series, each in its range.
    pub(super) fn new(
        store: &'s dyn Store,
        fields: &FieldsRead,
        parts: impl IntoIterator<Item = (SeriesId, TimeRange)>,
    ) -> Result<Self, StoreError> {
        let of = |(series, range): (SeriesId, TimeRange)| {
            let keys = keys_of(store, series)?;
            let numbers = keys.iter().map(|key| fields.number(&key.to_lowercase())).collect();
            Ok::<_, StoreError>(OfSeries {
                series,
                keys,
                numbers,
                range,
                rows: VecDeque::new(),
                read_at_once: 0,
                is_read: false,
            })
        };
        let series = parts.into_iter().map(of).collect::<Result<Vec<_>, StoreError>>()?;
        let rows_at_once = (REREAD_ROWS_MAX / series.len().max(1)).max(REREAD_ROWS_PER_DEVICE_MIN);
        let mut all = Self { store, series, next: BinaryHeap::new(), rows_at_once };
        for at in 0..all.series.len() {
            all.fetch(at)?;
        }
        Ok(all)
    }

    /// The next row, with its series.
    pub(super) fn next(&mut self) -> Result<Option<(SeriesId, StoredRow)>, StoreError> {
        let Some(Reverse((_, at))) = self.next.pop() else { return Ok(None) };
        let of_series = &mut self.series[at];
        let Some(row) = of_series.rows.pop_front() else { return Ok(None) };
        let series = of_series.series;
        if let Some(row) = of_series.rows.front() {
            self.next.push(Reverse((row.ts, at)));
        } else {
            self.fetch(at)?;
        }
        Ok(Some((series, row)))
    }

    /// Reads some rows of a series, which has none left here.
    fn fetch(&mut self, at: usize) -> Result<(), StoreError> {
        let OfSeries { series, keys, numbers, range, rows, read_at_once, is_read } = &mut self.series[at];
        if *is_read || range.is_empty() {
            return Ok(());
        }
        let limit = (*read_at_once * 2).clamp(REREAD_ROWS_FIRST.min(self.rows_at_once), self.rows_at_once);
        *read_at_once = limit;
        let scan =
            Scan { series: *series, keys: keys.clone(), range: *range, order: Order::Ascending, limit };
        let read = self.store.scan(&scan, &mut |row| {
            let values = numbers.iter().zip(row.values);
            let values = values.filter_map(|(number, value)| Some(((*number)?, (*value)?.to_owned())));
            rows.push_back(StoredRow { ts: row.ts, values: values.collect() });
            ControlFlow::Continue(())
        });
        absent_is_empty(read)?;
        *is_read = rows.len() < limit;
        if let Some(last) = rows.back() {
            range.start = last.ts.saturating_add_micros(1);
        }
        if let Some(first) = rows.front() {
            self.next.push(Reverse((first.ts, at)));
        }
        Ok(())
    }
}

/// The time of the newest row of a series, in microseconds.
pub(super) fn newest(store: &dyn Store, series: SeriesId) -> Result<Option<i64>, StoreError> {
    match store.latest(series, None) {
        Err(StoreError::UnknownSeries(_)) => Ok(None),
        latest => Ok(latest?.iter().map(|latest| latest.ts.micros()).max()),
    }
}

/// The times of the newest rows of a series in a range, the newest first, in microseconds.
pub(super) fn newest_times(
    store: &dyn Store,
    series: SeriesId,
    range: TimeRange,
    count: usize,
) -> Result<Vec<i64>, StoreError> {
    let mut times = Vec::new();
    if count == 0 || range.is_empty() {
        return Ok(times);
    }
    let scan = Scan { series, keys: keys_of(store, series)?, range, order: Order::Descending, limit: count };
    let read = store.scan(&scan, &mut |row| {
        times.push(row.ts.micros());
        ControlFlow::Continue(())
    });
    absent_is_empty(read)?;
    Ok(times)
}

/// All keys of a series: each of its rows has one of them.
pub(crate) fn keys_of(store: &dyn Store, series: SeriesId) -> Result<Vec<String>, StoreError> {
    match store.latest(series, None) {
        Err(StoreError::UnknownSeries(_)) => Ok(Vec::new()),
        latest => Ok(latest?.into_iter().map(|latest| latest.key).collect()),
    }
}

/// A series that was deleted has no rows.
fn absent_is_empty(read: Result<(), StoreError>) -> Result<(), StoreError> {
    match read {
        Err(StoreError::UnknownSeries(_)) => Ok(()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, ValueRef};
    use store::{Durability, MemoryStore, Writer};

    use super::*;

    #[test]
    fn rows_of_several_series_come_in_the_order_of_their_times() {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        let series: Vec<_> = ["a", "b"]
            .iter()
            .map(|name| store.series(&SeriesKey::new("t", &[("device", name)]).unwrap()).unwrap())
            .collect();
        for ts in 0..2_000 {
            let mut builder = batch.builder();
            builder.field(if ts % 2 == 0 { "Speed" } else { "other" }, ValueRef::I64(ts));
            builder.row(series[(ts % 3 == 0) as usize], Timestamp::from_micros(ts));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let mut fields = FieldsRead::new();
        fields.add([&"speed".to_owned()].into_iter()).unwrap();
        let range = TimeRange::new(Timestamp::from_micros(10), Timestamp::from_micros(1_990));
        let mut read = Reread::new(&store, &fields, series.iter().map(|series| (*series, range))).unwrap();
        read.rows_at_once = 7;
        let mut expected = 10;
        while let Some((of, row)) = read.next().unwrap() {
            assert_eq!(row.ts.micros(), expected);
            assert_eq!(of, series[(expected % 3 == 0) as usize]);
            let values = if expected % 2 == 0 { vec![(0, Value::I64(expected))] } else { Vec::new() };
            assert_eq!(row.values, values);
            expected += 1;
        }
        assert_eq!(expected, 1_990);
        assert_eq!(newest(&store, series[0]).unwrap(), Some(1_999));
        assert_eq!(newest_times(&store, series[1], range, 2).unwrap(), [1_989, 1_986]);
    }
}
