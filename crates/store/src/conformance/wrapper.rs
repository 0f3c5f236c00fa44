//! A store around another one, for tests: it passes every call on, and each kind of wrapper changes what it is for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp};

use crate::{
    ByteProgress, CheckReport, DefinitionCounts, DefinitionLimits, Deletion, Durability, LatestValue,
    Maintenance, MissingColumn, Progress, ProgressWatcher, Reader, Rewritten, Scan, ScannedBlock, Sequence,
    SeriesSet, Store, StoreError, StoreFiles, StoreStatus, TableSnapshot, TableStatus, Ticket, Writer,
};

/// What a store around another one changes. Everything has a default that changes nothing.
pub trait Wrapper: Send + Sync + 'static {
    /// The store that does the work.
    fn inner(&self) -> &dyn Store;

    /// Makes a write, or refuses it. It may call `write` several times.
    fn write<T>(&self, write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        write()
    }

    /// Refuses a batch.
    fn check_batch(&self, batch: &Batch) -> Result<(), StoreError> {
        let _ = batch;
        Ok(())
    }

    /// Finds or makes a series.
    fn make_series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        self.write(|| self.inner().series(key))
    }

    /// Notes a write that the inner store has taken.
    fn taken(&self, ticket: Ticket) {
        let _ = ticket;
    }

    /// The late failure of a write.
    fn failure_of(&self, ticket: Ticket) -> Option<StoreError> {
        self.inner().late_failure(ticket)
    }

    /// The progress that callers see.
    fn shown_progress(&self) -> Progress {
        self.inner().progress()
    }

    /// Takes a watcher of the progress.
    fn add_watcher(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.inner().watch(watcher);
    }

    /// The table that readers get.
    fn shown_table(&self, table: Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> {
        table
    }

    /// Ends the wrapper after the inner store was closed.
    fn end(&self) {}
}

impl<W: Wrapper> Writer for W {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        self.make_series(key)
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        self.check_batch(batch)?;
        let sequence = self.write(|| self.inner().append(batch, durability))?;
        self.taken(Ticket::of_rows(sequence, batch.len()));
        Ok(sequence)
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        self.check_batch(batch)?;
        let sequence = self.write(|| self.inner().append_known(batch, durability))?;
        if let Some(sequence) = sequence {
            self.taken(Ticket::of_rows(sequence, batch.len()));
        }
        Ok(sequence)
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.inner().missing_columns(batch)
    }

    fn late_failure(&self, ticket: Ticket) -> Option<StoreError> {
        self.failure_of(ticket)
    }

    fn progress(&self) -> Progress {
        self.shown_progress()
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.add_watcher(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        let sequence = self.write(|| self.inner().delete_rows(deletion, durability))?;
        self.taken(Ticket::of_deletion(sequence));
        Ok(sequence)
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        let sequence = self.write(|| self.inner().delete_series(series, durability))?;
        self.taken(Ticket::of_deletion(sequence));
        Ok(sequence)
    }
}

impl<W: Wrapper> Reader for W {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.inner().find_series(key)
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.inner().latest(series, keys)
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner().scan_blocks(scan, visit)
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.inner().tables()
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        Ok(self.inner().snapshot(table)?.map(|table| self.shown_table(table)))
    }
}

impl<W: Wrapper> Maintenance for W {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        self.write(|| self.inner().set_ttl(table, ttl))
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        self.write(|| self.inner().drop_key(table, key))
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        self.write(|| self.inner().drop_table(table))
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.inner().ttl(table)
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.inner().drop_expired(now)
    }

    fn limit_definitions(&self, limits: Arc<dyn DefinitionLimits>) {
        self.inner().limit_definitions(limits);
    }

    fn definitions(&self) -> DefinitionCounts {
        self.inner().definitions()
    }

    fn status(&self) -> StoreStatus {
        self.inner().status()
    }

    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        self.inner().check(progress)
    }

    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        self.inner().files()
    }

    fn flush(&self) -> Result<Rewritten, StoreError> {
        self.inner().flush()
    }

    fn compact(&self) -> Result<Rewritten, StoreError> {
        self.inner().compact()
    }

    fn close(&self) -> Result<(), StoreError> {
        let closed = self.inner().close();
        self.end();
        closed
    }
}
