//! A store that behaves like one on another machine: answers about durability come late and out of order, and it is busy at times.
//!
//! It keeps its rows in a [`MemoryStore`]. Callers that rely on more than the contract says fail with it: on rows that are durable when
//! `append` returns, or on a store that always has room.

mod link;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp};

use store::{
    Deletion, Durability, LatestValue, Maintenance, MemoryStore, MissingColumn, Progress, ProgressWatcher,
    Reader, Scan, ScannedBlock, Sequence, SeriesSet, StoreError, StoreStatus, TableSnapshot, TableStatus,
    Writer,
};

use link::Link;

/// A store behind a slow link.
pub struct RemoteStore {
    inner: MemoryStore,
    link: Link,
}

impl RemoteStore {
    /// An empty store. The seed decides which writes are answered before earlier ones, and how late.
    pub fn new(seed: u64) -> Self {
        Self { inner: MemoryStore::new(), link: Link::new(seed) }
    }

    fn sent(&self, sequence: Sequence) -> Result<Sequence, StoreError> {
        self.link.sent(sequence);
        Ok(sequence)
    }
}

impl Writer for RemoteStore {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        if self.inner.find_series(key).is_none() {
            self.link.admit()?;
        }
        self.inner.series(key)
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        self.link.admit()?;
        self.sent(self.inner.append(batch, durability)?)
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        self.link.admit()?;
        self.inner.append_known(batch, durability)?.map(|sequence| self.sent(sequence)).transpose()
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.inner.missing_columns(batch)
    }

    fn progress(&self) -> Progress {
        self.link.progress(self.inner.progress())
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.link.watch(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        self.link.admit()?;
        self.sent(self.inner.delete_rows(deletion, durability)?)
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        self.link.admit()?;
        self.sent(self.inner.delete_series(series, durability)?)
    }
}

impl Reader for RemoteStore {
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
        self.inner.snapshot(table)
    }
}

impl Maintenance for RemoteStore {
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
        let closed = self.inner.close();
        self.link.finish();
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract() {
        store::conformance::run(&|| Arc::new(RemoteStore::new(7)));
    }

    #[test]
    fn an_append_returns_before_its_rows_are_durable_and_every_eighth_write_finds_it_busy() {
        let store = RemoteStore::new(1);
        let key = SeriesKey::device("t", "d").unwrap();
        let series = store.series(&key).unwrap();
        let (mut busy, mut late) = (0, 0);
        for ts in 0..64 {
            let batch = store::conformance::batch_of(series, &[(ts, &[("x", model::Value::I64(ts))])]);
            match store.append(&batch, Durability::Fsync) {
                Ok(sequence) => late += u32::from(store.progress().durable < sequence),
                Err(StoreError::Busy { .. }) => busy += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(busy, 8);
        assert!(late > 0);
    }
}
