//! Writes and reads rows for the checks and for the tests of backends.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{Batch, SeriesId, SeriesKey, TableName, TimeRange, Timestamp, Value};
use parking_lot::{Condvar, Mutex};

use crate::{Durability, Order, Progress, ProgressWatcher, Scan, Sequence, Store, StoreError};

/// A row that a check writes: ts in microseconds, then key and value pairs.
pub type RowSpec<'a> = (i64, &'a [(&'a str, Value)]);

/// A row that a check has read: ts in microseconds, then the value or `None` of each requested key.
pub type FoundRow = (i64, Vec<Option<Value>>);

/// Blocks until `durability` holds for `sequence`.
///
/// # Panics
/// When the store is sealed before.
pub fn wait(store: &dyn Store, durability: Durability, sequence: Sequence) {
    #[derive(Default)]
    struct Waiter {
        changes: Mutex<u64>,
        changed: Condvar,
    }
    impl ProgressWatcher for Waiter {
        fn progress(&self, _progress: Progress) {
            *self.changes.lock() += 1;
            self.changed.notify_all();
        }
    }
    let waiter = Arc::new(Waiter::default());
    store.watch(waiter.clone());
    let mut changes = waiter.changes.lock();
    loop {
        let progress = store.progress();
        if progress.reached(durability) >= sequence {
            return;
        }
        assert!(!progress.sealed, "sealed while waiting: {:?}", store.status().sealed);
        waiter.changed.wait(&mut changes);
    }
}

/// Builds a batch of rows of one series.
pub fn batch_of(series: SeriesId, rows: &[RowSpec<'_>]) -> Batch {
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for (ts, fields) in rows {
        fields.iter().for_each(|(key, value)| builder.field(key, value.as_ref()));
        builder.row(series, Timestamp::from_micros(*ts));
    }
    builder.finish();
    batch
}

/// The rows that a scan visits.
pub fn collect(store: &dyn Store, scan: &Scan) -> Result<Vec<FoundRow>, StoreError> {
    let mut rows = Vec::new();
    store.scan(scan, &mut |row| {
        let values = row.values.iter().map(|value| value.map(|value| value.to_owned())).collect();
        rows.push((row.ts.micros(), values));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

/// A scan over all of time, ascending, without a limit.
pub fn scan_all(series: SeriesId, keys: &[&str]) -> Scan {
    Scan {
        series,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        range: TimeRange::ALL,
        order: Order::Ascending,
        limit: usize::MAX,
    }
}

/// The series of a device of the table `telemetry`.
pub(super) fn device(store: &dyn Store, name: &str) -> SeriesId {
    let key = SeriesKey::device("telemetry", name).expect("a valid name");
    store.series(&key).expect("a series")
}

/// The table with this name in the default namespace.
///
/// # Panics
/// When the name breaks the rules.
pub fn table(name: &str) -> TableName {
    name.try_into().expect("a valid name")
}

/// Appends rows of one series.
pub(super) fn append(store: &dyn Store, series: SeriesId, rows: &[RowSpec<'_>]) -> Sequence {
    store.append(&batch_of(series, rows), Durability::Fsync).expect("room for a small batch")
}

/// All rows of a series, ascending.
pub(super) fn read(store: &dyn Store, series: SeriesId, keys: &[&str]) -> Vec<FoundRow> {
    collect(store, &scan_all(series, keys)).expect("a scan")
}
