//! A store whose writes wait while it is busy, for checks that are not about backpressure.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp};

use crate::{
    ByteProgress, CheckReport, Deletion, Durability, LatestValue, Maintenance, MissingColumn, Progress,
    ProgressWatcher, Reader, Scan, ScannedBlock, Sequence, SeriesSet, Store, StoreError, StoreFiles,
    StoreStatus, TableSnapshot, TableStatus, Writer,
};

/// Another store. A write that finds it busy is repeated.
pub(super) struct Patient(pub(super) Arc<dyn Store>);

/// Repeats a write until the store is not busy.
fn when_free<T>(write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    loop {
        match write() {
            Err(StoreError::Busy { .. }) => std::thread::yield_now(),
            other => return other,
        }
    }
}

impl Writer for Patient {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        when_free(|| self.0.series(key))
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        when_free(|| self.0.append(batch, durability))
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        when_free(|| self.0.append_known(batch, durability))
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.0.missing_columns(batch)
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.0.watch(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        when_free(|| self.0.delete_rows(deletion, durability))
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        when_free(|| self.0.delete_series(series, durability))
    }
}

impl Reader for Patient {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.0.find_series(key)
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.0.latest(series, keys)
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.scan_blocks(scan, visit)
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.0.tables()
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        self.0.snapshot(table)
    }
}

impl Maintenance for Patient {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        when_free(|| self.0.set_ttl(table, ttl))
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        when_free(|| self.0.drop_key(table, key))
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        when_free(|| self.0.drop_table(table))
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.0.ttl(table)
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.0.drop_expired(now)
    }

    fn status(&self) -> StoreStatus {
        self.0.status()
    }

    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        self.0.check(progress)
    }

    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        self.0.files()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.0.close()
    }
}
