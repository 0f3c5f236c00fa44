//! The reference store with failures on command.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp};
use store::memory::MemoryStore;
use store::{
    Deletion, Durability, LatestValue, Maintenance, MissingColumn, Progress, ProgressWatcher, Reader, Scan,
    ScannedBlock, Sequence, SeriesSet, StoreError, StoreStatus, TableSnapshot, TableStatus, Writer,
};

/// A key that this store refuses, as if the table had the maximum number of columns.
pub(crate) const ONE_TOO_MANY: &str = "one_too_many";
/// A key whose rows the store does not accept now.
pub(crate) const LATER: &str = "later";

/// The failures that a test can switch on.
#[derive(Debug, Default)]
pub(crate) struct Moods {
    /// The store has no room for new series.
    pub(crate) no_new_series: AtomicBool,
    /// The store has no room for rows with the key [`LATER`].
    pub(crate) no_later: AtomicBool,
    /// The store accepts nothing, as after a failed write.
    pub(crate) takes_nothing: AtomicBool,
    /// `append` panics.
    pub(crate) panics: AtomicBool,
    /// The creation of series panics.
    pub(crate) panics_at_series: AtomicBool,
}

pub(crate) struct MoodyStore {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) moods: Arc<Moods>,
}

impl Writer for MoodyStore {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        assert!(!self.moods.panics_at_series.load(Ordering::SeqCst), "a bug on purpose");
        match self.store.find_series(key) {
            Some(series) => Ok(series),
            None if self.moods.no_new_series.load(Ordering::SeqCst) => {
                Err(StoreError::Busy { reason: "no room for a series".into() })
            }
            None => self.store.series(key),
        }
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        assert!(!self.moods.panics.load(Ordering::SeqCst), "a bug on purpose");
        if self.moods.takes_nothing.load(Ordering::SeqCst) {
            return Err(StoreError::Sealed { cause: "cannot write".into() });
        }
        if batch.rows().any(|row| row.fields().any(|field| field.key == ONE_TOO_MANY)) {
            return Err(StoreError::OverLimit { what: "columns of a table", actual: 20_001, limit: 20_000 });
        }
        let is_later = || batch.rows().any(|row| row.fields().any(|field| field.key == LATER));
        if self.moods.no_later.load(Ordering::SeqCst) && is_later() {
            return Err(StoreError::Busy { reason: "no room for these rows".into() });
        }
        self.store.append(batch, durability)
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        match self.store.missing_columns(batch)?.is_empty() {
            true => self.append(batch, durability).map(Some),
            false => Ok(None),
        }
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.store.missing_columns(batch)
    }

    fn progress(&self) -> Progress {
        self.store.progress()
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.store.watch(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        self.store.delete_rows(deletion, durability)
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        self.store.delete_series(series, durability)
    }
}

impl Reader for MoodyStore {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.store.find_series(key)
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.store.latest(series, keys)
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.scan_blocks(scan, visit)
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.store.tables()
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        self.store.snapshot(table)
    }
}

impl Maintenance for MoodyStore {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        self.store.set_ttl(table, ttl)
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        self.store.drop_key(table, key)
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        self.store.drop_table(table)
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.store.ttl(table)
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.store.drop_expired(now)
    }

    fn status(&self) -> StoreStatus {
        self.store.status()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.store.close()
    }
}
