//! A store that wraps the tables of another store.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp};
use store::{
    Deletion, Durability, LatestValue, Maintenance, MemoryStore, MissingColumn, Progress, ProgressWatcher,
    Reader, Scan, ScannedBlock, Sequence, SeriesSet, StoreError, StoreStatus, TableSnapshot, TableStatus,
    Writer,
};

type Wrap = dyn Fn(Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> + Send + Sync;

/// The inner store with wrapped tables.
pub(crate) struct Wrapped {
    inner: Arc<MemoryStore>,
    wrap: Box<Wrap>,
}

impl Wrapped {
    pub(crate) fn new(
        inner: Arc<MemoryStore>,
        wrap: impl Fn(Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, wrap: Box::new(wrap) }
    }
}

impl Writer for Wrapped {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        self.inner.series(key)
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        self.inner.append(batch, durability)
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        self.inner.append_known(batch, durability)
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.inner.missing_columns(batch)
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.inner.watch(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        self.inner.delete_rows(deletion, durability)
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        self.inner.delete_series(series, durability)
    }
}

impl Reader for Wrapped {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.inner.find_series(key)
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.inner.latest(series, keys)
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.scan_blocks(scan, visit)
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.inner.tables()
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        Ok(self.inner.snapshot(table)?.map(|table| (self.wrap)(table)))
    }
}

impl Maintenance for Wrapped {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        self.inner.set_ttl(table, ttl)
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        self.inner.drop_key(table, key)
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        self.inner.drop_table(table)
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.inner.ttl(table)
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.inner.drop_expired(now)
    }

    fn status(&self) -> StoreStatus {
        self.inner.status()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}
