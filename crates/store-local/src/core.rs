//! What the callers and the store's threads share: one lock over the write side, atomics for progress.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::PanicEndsProcess;
use parking_lot::{Condvar, Mutex, RwLock};
use store::{Durability, Progress, ProgressWatcher, StoreError};

use crate::append::Scratch;
use crate::array_cache::ArrayCache;
use crate::catalog::{Catalog, SeriesIndex};
use crate::chunk::Chunk;
use crate::compaction::{Crowd, Limits};
use crate::compactor::Compactor;
use crate::disk::{Disk, Layout};
use crate::latest::LatestPool;
use crate::log::frame::FRAME_HEADER_BYTES;
use crate::log::writer::Segments;
use crate::manifest::Manifest;
use crate::options::Options;
use crate::part::{Part, PartCache};
use crate::retention::RetentionTime;
use crate::series_state::{Origin, SeriesState};
use crate::version::Version;

/// Everything of an open store but its threads.
pub(crate) struct Core {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    /// The catalog's series, to be read without the lock of the state. Whoever holds this one must not wait for that.
    pub(crate) series: Arc<RwLock<SeriesIndex>>,
    /// The committer sleeps here.
    pub(crate) commit_work: Condvar,
    /// The flusher sleeps here, and whoever waits for it.
    pub(crate) flush_work: Condvar,
    pub(crate) segments: Segments,
    pub(crate) part_cache: PartCache,
    pub(crate) arrays: Arc<ArrayCache>,
    /// Taken before `state` and never while that is held: whoever has it waits for syncs (change.rs).
    pub(crate) manifest: Mutex<Manifest>,
    /// Taken before `manifest`.
    pub(crate) retention: Mutex<RetentionTime>,
    /// Parts that no version has any more and whose files are still there.
    pub(crate) dropped_parts: Mutex<Vec<Arc<Part>>>,
    /// The compactor sleeps here.
    pub(crate) compact_work: Condvar,
    next_part: AtomicU64,
    marks: Marks,
    watchers: RwLock<Vec<Arc<dyn ProgressWatcher>>>,
}

#[derive(Default)]
struct Marks {
    appended: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    sealed: AtomicBool,
}

/// The write side, under one lock that is held for microseconds.
pub(crate) struct State {
    pub(crate) catalog: Catalog,
    pub(crate) series: Vec<SeriesState>,
    pub(crate) tables: Vec<TableMemory>,
    pub(crate) pending: Pending,
    pub(crate) latest: LatestPool,
    pub(crate) version: Arc<Version>,
    pub(crate) memory: MemoryUse,
    pub(crate) committer: Committer,
    pub(crate) flusher: Flusher,
    pub(crate) compactor: Compactor,
    /// What is known about the batch being appended; kept for its memory.
    pub(crate) scratch: Scratch,
    pub(crate) next_chunk: u64,
    /// How often rows were dropped for their age: what was read before may be gone since.
    pub(crate) expiries: u64,
    pub(crate) rows_appended: u64,
    pub(crate) stop: Stop,
    /// The failure after which nothing more is written.
    pub(crate) sealed: Option<StoreError>,
    /// What a write waits for that passes by itself, such as disk space, by who met it: the log, the flush.
    pub(crate) stalled: [Option<StoreError>; 2],
}

/// Index into [`State::stalled`].
pub(crate) const STALLED_LOG: usize = 0;
/// Index into [`State::stalled`].
pub(crate) const STALLED_FLUSH: usize = 1;

/// How far the end of a store has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Open.
    Running,
    /// Appends are refused; what was taken is being made durable.
    Closing,
    /// Threads end at once, as in a crash.
    Now,
}

/// One table's rows in memory, in the order of arrival: flushing, then frozen, then open.
pub(crate) struct TableMemory {
    pub(crate) flushing: Vec<Arc<Chunk>>,
    pub(crate) frozen: Vec<Arc<Chunk>>,
    pub(crate) open: Chunk,
}

/// Log entries on their way to the committer.
pub(crate) struct Pending {
    /// A frame in the making: room for its header, then entries.
    pub(crate) buffer: Vec<u8>,
    pub(crate) rows: u32,
    pub(crate) first_sequence: u64,
    /// Number of the frame that `buffer` will be.
    pub(crate) frame: u64,
    /// The strongest class that waits; `None` when there is nothing.
    pub(crate) wanted: Option<Durability>,
    /// Whether somebody waits for the write alone.
    pub(crate) wants_os: bool,
    /// When the first entry came.
    pub(crate) since_us: u64,
    /// Bytes of the frame that is being written.
    pub(crate) in_flight: usize,
}

impl Pending {
    pub(crate) fn new(frame: u64, first_sequence: u64) -> Self {
        Self {
            buffer: vec![0; FRAME_HEADER_BYTES],
            rows: 0,
            first_sequence,
            frame,
            wanted: None,
            wants_os: false,
            since_us: 0,
            in_flight: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len() == FRAME_HEADER_BYTES
    }

    /// Bytes not yet written and synced.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.len() - FRAME_HEADER_BYTES + self.in_flight
    }
}

/// Bytes of rows that no part holds.
#[derive(Default)]
pub(crate) struct MemoryUse {
    pub(crate) active: usize,
    pub(crate) flushing: usize,
}

/// What the committer is doing, so that appends wake it only when that is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It will look at the pending buffer by itself.
    Working,
    /// There was nothing to do.
    Idle,
    /// It lets class `memory` entries gather.
    Lazy,
    /// It keeps the interval between syncs.
    Paced,
    /// The interval is over, and it lets rows gather until there are so many.
    Gathering(u32),
}

/// The committer as seen from outside.
pub(crate) struct Committer {
    pub(crate) doing: Doing,
    /// Somebody needs everything synced, pending entries or not.
    pub(crate) sync_wanted: bool,
    pub(crate) ended: bool,
}

/// The flusher as seen from outside.
#[derive(Default)]
pub(crate) struct Flusher {
    /// Flushes asked for and completed, counted.
    pub(crate) asked: u64,
    pub(crate) done: u64,
    /// The last one asked for by somebody who does not want to wait for merges.
    pub(crate) urgent: u64,
    /// The flusher waits for rows to become durable.
    pub(crate) waiting: bool,
    /// What the flusher waits to be merged.
    pub(crate) held: Option<Crowd>,
    /// An append was answered busy since.
    pub(crate) refused: bool,
}

impl State {
    /// Refuses writes to a store that is closed, sealed or waiting for disk space.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.check_open()?;
        match self.stalled.iter().flatten().next() {
            Some(error) => Err(StoreError::Busy { reason: why_stalled(error) }),
            None => Ok(()),
        }
    }

    /// Why the flusher waits for merges, if it does.
    pub(crate) fn held(&self, limits: &Limits) -> Option<String> {
        let Crowd { table, parts } = self.flusher.held?;
        let of = match table {
            Some(table) => format!("the table {}", self.catalog.tables[table as usize].name),
            None => "tables that share parts".to_owned(),
        };
        let limit = limits.overlap_max;
        let stalled = self.compactor.stalled.as_ref();
        let stalled = stalled.map(|error| format!("; {}", why_stalled(error))).unwrap_or_default();
        Some(format!(
            "{parts} parts of {of} overlap and have to be merged first, the limit is {limit}{stalled}"
        ))
    }

    /// Refuses what a closed or sealed store cannot do any more.
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.stop != Stop::Running {
            return Err(StoreError::Closed);
        }
        if let Some(cause) = &self.sealed {
            return Err(StoreError::Sealed { cause: cause.to_string() });
        }
        Ok(())
    }

    /// Freezes a table's open chunk and begins a new one.
    pub(crate) fn freeze(&mut self, table: u32) {
        freeze(&mut self.tables[table as usize], &mut self.next_chunk, &mut self.memory);
    }

    /// Adds what the memtable needs for tables and series that the catalog has got.
    pub(crate) fn follow_catalog(&mut self, origin: Origin) {
        while self.tables.len() < self.catalog.tables.len() {
            let open = Chunk::new(self.next_chunk);
            self.next_chunk += 1;
            self.tables.push(TableMemory { flushing: Vec::new(), frozen: Vec::new(), open });
        }
        let index = self.catalog.series.read();
        for id in self.series.len()..index.len() {
            let table = index.table(id as u32).expect("BUG: ids below the length are known");
            self.series.push(SeriesState::new(table, origin));
        }
    }

    /// Drops latest values that were not used lately until the bounds are met.
    pub(crate) fn bound_latest(&mut self, series_max: usize, bytes_max: usize) {
        while self.latest.is_over(series_max, bytes_max)
            && let Some(series) = self.latest.evict()
        {
            self.series[series as usize].forget();
        }
    }
}

impl TableMemory {
    /// The open chunk, a new one if the last is full.
    #[inline]
    pub(crate) fn open_chunk(
        &mut self,
        rows_max: usize,
        next_chunk: &mut u64,
        memory: &mut MemoryUse,
    ) -> &mut Chunk {
        if self.open.room(rows_max) == 0 {
            freeze(self, next_chunk, memory);
        }
        &mut self.open
    }
}

fn freeze(table: &mut TableMemory, next_chunk: &mut u64, memory: &mut MemoryUse) {
    if table.open.is_empty() {
        return;
    }
    // Readers freeze as well; rows must not be lost on the way.
    let _guard = PanicEndsProcess::begin();
    let mut chunk = std::mem::replace(&mut table.open, Chunk::new(*next_chunk));
    *next_chunk += 1;
    let before = chunk.bytes();
    chunk.shrink();
    memory.active = memory.active + chunk.bytes() - before;
    table.frozen.push(Arc::new(chunk));
}

impl Core {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        layout: Layout,
        options: Options,
        state: State,
        segments: Segments,
        sequence: u64,
        (manifest, next_part): (Manifest, u64),
    ) -> Self {
        let arrays = Arc::new(ArrayCache::new(options.array_cache_bytes_max));
        let retention = RetentionTime::new(state.catalog.retention, options.clock.now_us());
        let core = Self {
            disk,
            layout,
            options,
            series: state.catalog.series.clone(),
            state: Mutex::new(state),
            commit_work: Condvar::new(),
            flush_work: Condvar::new(),
            segments,
            part_cache: PartCache::default(),
            arrays,
            manifest: Mutex::new(manifest),
            retention: Mutex::new(retention),
            dropped_parts: Mutex::default(),
            compact_work: Condvar::new(),
            next_part: AtomicU64::new(next_part),
            marks: Marks::default(),
            watchers: RwLock::default(),
        };
        core.set_appended(sequence);
        core.set_written(sequence);
        core.set_durable(sequence);
        core
    }

    pub(crate) fn progress(&self) -> Progress {
        // Read in the order opposite to that of writing, so that durable <= written <= appended always holds.
        let sealed = self.marks.sealed.load(Ordering::Acquire);
        let durable = self.marks.durable.load(Ordering::Acquire);
        let written = self.marks.written.load(Ordering::Acquire);
        let appended = self.marks.appended.load(Ordering::Acquire);
        Progress { appended, written, durable, sealed }
    }

    /// A part number that was not used before.
    pub(crate) fn next_part(&self) -> u64 {
        self.next_part.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn set_appended(&self, sequence: u64) {
        self.marks.appended.store(sequence, Ordering::Release);
    }

    pub(crate) fn set_written(&self, sequence: u64) {
        self.marks.written.store(sequence, Ordering::Release);
    }

    pub(crate) fn set_durable(&self, sequence: u64) {
        self.marks.durable.store(sequence, Ordering::Release);
    }

    pub(crate) fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.watchers.write().push(watcher);
    }

    /// Must not be called with the state locked: watchers may read.
    pub(crate) fn tell_watchers(&self) {
        let progress = self.progress();
        self.watchers.read().iter().for_each(|watcher| watcher.progress(progress));
    }

    /// Refuses all further writes. The first cause is kept.
    pub(crate) fn seal(&self, cause: StoreError) {
        let mut state = self.state.lock();
        state.sealed.get_or_insert(cause);
        self.marks.sealed.store(true, Ordering::Release);
        self.commit_work.notify_all();
        self.flush_work.notify_all();
        self.compact_work.notify_all();
        drop(state);
        self.tell_watchers();
    }

    /// Notes what `who` waits for, or that it does not wait any more.
    pub(crate) fn set_stalled(&self, who: usize, error: Option<&StoreError>) {
        let mut state = self.state.lock();
        let changed = state.stalled[who].is_some() != error.is_some();
        state.stalled[who] = error.cloned();
        drop(state);
        if changed {
            self.tell_watchers();
        }
    }
}

/// Why work in the background did not end.
pub(crate) enum Abort {
    Failed(StoreError),
    /// The store ends; recovery will do it.
    Stopped,
}

impl From<StoreError> for Abort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Says what a write waits for, and what to do.
pub(crate) fn why_stalled(error: &StoreError) -> String {
    let StoreError::Io { source, .. } = error else { return error.to_string() };
    match source.kind() {
        ErrorKind::StorageFull => format!("the disk is full: {error}; free some space"),
        ErrorKind::QuotaExceeded => {
            format!("the disk quota is used up: {error}; free some space or raise the quota")
        }
        ErrorKind::OutOfMemory => {
            format!("the machine is out of memory: {error}; writing goes on when there is some")
        }
        _ => format!(
            "no file descriptors are left: {error}; writing goes on when connections close, or raise LimitNOFILE"
        ),
    }
}
