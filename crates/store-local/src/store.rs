//! The embedded store as its callers see it. Starts and ends its threads.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use model::limits::RELIEF_FLUSH_RATIO;
use model::{Batch, PanicEndsProcess, SeriesId, SeriesKey, TableName, Timestamp};
use parking_lot::Mutex;
use store::{
    ByteProgress, CheckReport, DefinitionCounts, DefinitionLimits, Deletion, Durability, LatestValue,
    Maintenance, MissingColumn, PartsSize, Progress, ProgressWatcher, Reader, Rewritten, Scan, ScannedBlock,
    Sequence, SeriesSet, StoreError, StoreFiles, StoreStatus, TableSnapshot, TableStatus, Writer,
};

use crate::append::NewColumns;
use crate::backup::live_files;
use crate::check::live::check_live;
use crate::committer;
use crate::compactor;
use crate::core::{Core, Stop};
use crate::disk::{Disk, DiskLock};
use crate::entry::Entry;
use crate::flusher;
use crate::open::{Opened, open};
use crate::options::Options;
use crate::part::Part;
use crate::report::RecoveryReport;
use crate::series_state::Origin;
use crate::stall::stall_reason;

/// A store in one directory of this machine.
///
/// A drop without [`close`](Maintenance::close) ends the store as in a crash: rows that were not acknowledged may be lost.
pub struct LocalStore {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The lock of the directory. The store releases it when the threads have ended.
    lock: Mutex<Option<Box<dyn DiskLock>>>,
}

impl LocalStore {
    /// Opens the store in `dir` and recovers the rows of an earlier process. Creates the directory if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process uses the directory; [`StoreError::Io`] when the directory cannot be
    /// written; [`StoreError::Corrupt`] when manifest or series file are damaged. Damage to the log or to parts is not an
    /// error; it is in the report.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: Options,
    ) -> Result<(Self, RecoveryReport), StoreError> {
        let Opened { core, report, lock, next_segment, series_file } = open(disk, dir, options)?;
        let preallocate = core.options.preallocate;
        let store = Self { core: Arc::new(core), threads: Mutex::default(), lock: Mutex::new(Some(lock)) };
        store.start("store-log", move |core| committer::run(core, next_segment))?;
        store.start("store-flush", move |core| flusher::run(core, series_file))?;
        store.start("store-compact", compactor::run)?;
        if preallocate {
            store.start("store-spare", |core| {
                core.segments.make_spares(core.disk.as_ref(), &core.layout, core.options.segment_bytes);
            })?;
        }
        Ok((store, report))
    }

    fn start(&self, name: &str, run: impl FnOnce(&Core) + Send + 'static) -> Result<(), StoreError> {
        let core = self.core.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _guard = PanicEndsProcess::begin();
            run(&core);
        });
        let thread =
            thread.map_err(|error| StoreError::io("start a thread for", &self.core.layout.root, error))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Writes all rows in memory into parts, and waits until that is done.
    ///
    /// The store does this by itself when memtable or log have grown. A caller needs it before it copies the parts. Unlike
    /// the flushes of the store itself it does not wait for merges that have fallen behind.
    ///
    /// # Errors
    /// [`StoreError::Closed`] or [`StoreError::Sealed`] when the store is closed or sealed, now or during the wait.
    pub fn flush(&self) -> Result<(), StoreError> {
        let mut state = self.core.state.lock();
        state.check_open()?;
        let requested = self.core.request_urgent_flush(&mut state);
        while state.flusher.completed < requested {
            state.check_open()?;
            self.core.flush_work.wait(&mut state);
        }
        Ok(())
    }

    /// Merges parts until there is nothing to merge, and waits until that is done. With [`Options::compact`] the store does
    /// this by itself.
    ///
    /// # Errors
    /// [`StoreError::Closed`] or [`StoreError::Sealed`] when the store is closed or sealed, now or during the wait.
    pub fn compact(&self) -> Result<(), StoreError> {
        let mut state = self.core.state.lock();
        state.check_open()?;
        state.compactor.requested += 1;
        let requested = state.compactor.requested;
        self.core.compact_work.notify_all();
        while state.compactor.completed < requested {
            state.check_open()?;
            self.core.flush_work.wait(&mut state);
        }
        Ok(())
    }

    /// Runs a flush or a compaction, and compares the parts before and after it.
    fn rewrite(&self, act: fn(&Self) -> Result<(), StoreError>) -> Result<Rewritten, StoreError> {
        let (ids, before) = self.parts(|part| part.info.id)?;
        act(self)?;
        let (parts, after) = self.parts(|part| (part.info.id, part.info.rows, part.info.bytes))?;
        let ids: HashSet<u64> = ids.into_iter().collect();
        let mut rewritten = Rewritten { before, after, ..Rewritten::default() };
        for (_, rows, bytes) in parts.into_iter().filter(|(id, ..)| !ids.contains(id)) {
            rewritten.rows += rows;
            rewritten.bytes += bytes;
        }
        Ok(rewritten)
    }

    /// Something of each part of the store, and the size of all of them.
    fn parts<T>(&self, of: impl Fn(&Part) -> T) -> Result<(Vec<T>, PartsSize), StoreError> {
        let state = self.core.state.lock();
        state.check_open()?;
        if let Some(error) = state.stalled.iter().flatten().next() {
            return Err(StoreError::Busy { reason: stall_reason(error) });
        }
        let (parts, bytes) = state.version.size();
        Ok((state.version.all().map(|part| of(part)).collect(), PartsSize { parts, bytes }))
    }

    fn stop(&self, how: Stop) {
        let mut state = self.core.state.lock();
        state.stop = state.stop.max(how);
        self.core.commit_work.notify_all();
        self.core.flush_work.notify_all();
        self.core.compact_work.notify_all();
        drop(state);
        self.core.segments.stop();
        for thread in self.threads.lock().drain(..) {
            // No thread has panicked, because a panic ends the process.
            let _ = thread.join();
        }
        *self.lock.lock() = None;
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        self.stop(Stop::Now);
    }
}

impl Writer for LocalStore {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        let mut guard = self.core.state.lock();
        let state = &mut *guard;
        if let Some(id) = state.catalog.find_series(key) {
            return Ok(SeriesId(id.into()));
        }
        let _guard = PanicEndsProcess::begin();
        state.check_writable()?;
        let options = &self.core.options;
        self.core.check_room(state, key_bytes(key))?;
        let pending = &mut state.pending;
        let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
        let id = state.catalog.create_series(key, options.tables_max, options.columns_per_table_max, log)?;
        state.follow_catalog(Origin::New);
        let was_empty = state.pending.wanted.is_none();
        self.core.request_commit(state, Durability::Memory, was_empty);
        Ok(SeriesId(id.into()))
    }

    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        let _guard = PanicEndsProcess::begin();
        let sequence = self.core.append(batch, durability, NewColumns::Define)?;
        Ok(sequence.expect("BUG: all columns were defined"))
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.append(batch, durability, NewColumns::Decline)
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        self.core.missing_columns(batch)
    }

    fn progress(&self) -> Progress {
        self.core.progress()
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.core.watch(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.delete_rows(deletion, durability)
    }

    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.delete_series(series, durability)
    }
}

impl Reader for LocalStore {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.core.state.lock().catalog.find_series(key).map(|id| SeriesId(id.into()))
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.core.latest(series, keys)
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.core.scan_blocks(scan, visit)
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        Ok(crate::table::statuses(&self.core))
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        Ok(crate::table::snapshot(&self.core, table).map(|table| Arc::new(table) as _))
    }
}

impl Maintenance for LocalStore {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.set_ttl(table, ttl)
    }

    fn limit_definitions(&self, limits: Arc<dyn DefinitionLimits>) {
        self.core.state.lock().catalog.limits = Some(limits);
    }

    fn definitions(&self) -> DefinitionCounts {
        self.core.state.lock().catalog.definitions().clone()
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.drop_key(table, key)
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.drop_table(table)
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.core.ttl(table)
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        let _guard = PanicEndsProcess::begin();
        self.core.drop_expired(now)
    }

    fn status(&self) -> StoreStatus {
        let log_bytes = self.core.segments.bytes();
        let state = self.core.state.lock();
        let (parts, part_bytes) = state.version.size();
        let held = state.backpressure(&self.core.options.compaction);
        let busy = held.as_ref().filter(|_| state.flusher.refused);
        StoreStatus {
            sealed: state.sealed.as_ref().map(ToString::to_string),
            busy: state.stalled.iter().flatten().next().map(stall_reason).or(busy.cloned()),
            flush_held: held,
            tables: state.catalog.live_tables() as u64,
            series: self.core.series.read().live() as u64,
            rows_appended: state.rows_appended,
            log_pending_bytes: state.pending.bytes() as u64,
            log_bytes,
            memtable_bytes: (state.memory.active + state.memory.flushing) as u64,
            parts,
            part_bytes,
            deletions: state.tombstones.all().count() as u64,
            parts_per_table_max: state.version.parts_per_table(),
            parts_overlap_max: state.version.overlap() as u64,
        }
    }

    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        check_live(&self.core, progress)
    }

    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        live_files(&self.core)
    }

    fn flush(&self) -> Result<Rewritten, StoreError> {
        self.rewrite(Self::flush)
    }

    fn relieve_memory(&self) {
        self.core.arrays.clear();
        let mut state = self.core.state.lock();
        let is_idle = state.flusher.requested == state.flusher.completed;
        // Each flush makes files, so a small memtable is not worth one.
        let worth_it = self.core.options.memtable_flush_bytes / RELIEF_FLUSH_RATIO;
        if state.check_open().is_ok() && is_idle && state.memory.active >= worth_it {
            self.core.request_flush(&mut state);
        }
    }

    fn compact(&self) -> Result<Rewritten, StoreError> {
        self.rewrite(Self::compact)
    }

    fn close(&self) -> Result<(), StoreError> {
        self.stop(Stop::Closing);
        self.core.notify_watchers();
        match &self.core.state.lock().sealed {
            Some(cause) => Err(StoreError::Sealed { cause: cause.to_string() }),
            None => Ok(()),
        }
    }
}

/// An upper bound of the log bytes that define a series.
fn key_bytes(key: &SeriesKey) -> usize {
    let tags = key.tags().iter().map(|(name, value)| 3 * name.len() + value.len() + 40);
    key.table().canonical().len() + 40 + tags.sum::<usize>()
}
