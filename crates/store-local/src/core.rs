//! The state that the callers and the threads of the store share: one lock over the write side, atomics for progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::PanicEndsProcess;
use parking_lot::{Condvar, Mutex, RwLock};
use store::{Durability, Progress, ProgressWatcher, SeriesSet, StoreError};

use crate::append_scratch::Scratch;
use crate::array_cache::ArrayCache;
use crate::catalog::{Catalog, SeriesIndex};
use crate::chunk::Chunk;
use crate::compaction::{Limits, OverlapPressure};
use crate::disk::{Disk, Layout};
use crate::latest::LatestPool;
use crate::log::frame::FRAME_HEADER_BYTES;
use crate::log::writer::Segments;
use crate::manifest::Manifest;
use crate::options::Options;
use crate::part::{Part, PartCache};
use crate::retention_time::RetentionTime;
use crate::series_state::{NO_TABLE, Origin, SeriesState};
use crate::stall::stall_reason;
use crate::tombstone::{Tombstone, Tombstones};
use crate::version::Version;
use crate::workers::{Committer, Compactor, Flusher};

/// An open store without its threads.
pub(crate) struct Core {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    /// The series of the catalog, readable without the lock of the state. A thread that holds this lock must not wait for
    /// the lock of the state.
    pub(crate) series: Arc<RwLock<SeriesIndex>>,
    /// The committer waits here for work.
    pub(crate) commit_work: Condvar,
    /// The flusher waits here for work; callers wait here for the flusher and the compactor.
    pub(crate) flush_work: Condvar,
    pub(crate) segments: Segments,
    pub(crate) part_cache: PartCache,
    pub(crate) arrays: Arc<ArrayCache>,
    /// A thread takes this lock before `state`, and never while it holds `state`: it waits for syncs under this lock
    /// (change.rs).
    pub(crate) manifest: Mutex<Manifest>,
    /// A thread takes this lock before `manifest`.
    pub(crate) retention: Mutex<RetentionTime>,
    /// Parts that the current version does not have, and whose files still exist.
    pub(crate) dropped_parts: Mutex<Vec<Arc<Part>>>,
    /// The compactor waits here for work.
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

/// The write side. Threads hold its lock for microseconds.
pub(crate) struct State {
    pub(crate) catalog: Catalog,
    pub(crate) series: Vec<SeriesState>,
    pub(crate) tables: Vec<TableMemory>,
    pub(crate) pending: Pending,
    pub(crate) latest: LatestPool,
    pub(crate) version: Arc<Version>,
    pub(crate) tombstones: Tombstones,
    pub(crate) memory: MemoryUse,
    pub(crate) committer: Committer,
    pub(crate) flusher: Flusher,
    pub(crate) compactor: Compactor,
    /// Facts about the batch that is being appended. The store keeps the memory.
    pub(crate) scratch: Scratch,
    pub(crate) next_chunk: u64,
    /// How often retention or a caller has deleted rows. Rows that were read before the last time may be gone.
    pub(crate) expiries: u64,
    pub(crate) rows_appended: u64,
    pub(crate) stop: Stop,
    /// The failure after which the store writes nothing more.
    pub(crate) sealed: Option<StoreError>,
    /// The transient failure, such as a full disk, that the log ([`STALLED_LOG`]) or the flush ([`STALLED_FLUSH`]) waits
    /// out.
    pub(crate) stalled: [Option<StoreError>; 2],
}

/// Index of the log in [`State::stalled`].
pub(crate) const STALLED_LOG: usize = 0;
/// Index of the flush in [`State::stalled`].
pub(crate) const STALLED_FLUSH: usize = 1;

/// Whether the store ends, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// The store is open.
    Running,
    /// The store refuses appends, and makes the rows that it has durable.
    Closing,
    /// The threads end at once, as in a crash.
    Now,
}

/// The rows of one table in memory, in the order of arrival: flushing, then frozen, then open.
pub(crate) struct TableMemory {
    pub(crate) flushing: Vec<Arc<Chunk>>,
    pub(crate) frozen: Vec<Arc<Chunk>>,
    pub(crate) open: Chunk,
}

/// Log entries on their way to the committer.
pub(crate) struct Pending {
    /// The next frame: space for its header, then entries.
    pub(crate) buffer: Vec<u8>,
    pub(crate) rows: u32,
    pub(crate) first_sequence: u64,
    /// The number of the frame that `buffer` will become.
    pub(crate) frame: u64,
    /// The strongest class of the pending entries; `None` when there are none.
    pub(crate) wanted: Option<Durability>,
    /// Whether a caller waits for the write without the sync.
    pub(crate) wants_os: bool,
    /// When the first pending entry arrived.
    pub(crate) since_us: u64,
    /// Bytes of the frame that the committer writes.
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

    /// Bytes that are not written and synced yet.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.len() - FRAME_HEADER_BYTES + self.in_flight
    }
}

/// Bytes of the rows that no part has.
#[derive(Default)]
pub(crate) struct MemoryUse {
    pub(crate) active: usize,
    pub(crate) flushing: usize,
}

impl State {
    /// Refuses writes to a store that is closed or sealed, or that waits for disk space.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.check_open()?;
        match self.stalled.iter().flatten().next() {
            Some(error) => Err(StoreError::Busy { reason: stall_reason(error) }),
            None => Ok(()),
        }
    }

    /// Why the flusher waits for merges; `None` when it does not.
    pub(crate) fn backpressure(&self, limits: &Limits) -> Option<String> {
        let OverlapPressure { table, parts } = self.flusher.backpressure?;
        let of = match table {
            Some(table) => format!("the table {}", self.catalog.tables[table as usize].name),
            None => "tables that share parts".to_owned(),
        };
        let limit = limits.overlap_max;
        let stalled = self.compactor.stalled.as_ref();
        let stalled = stalled.map(|error| format!("; {}", stall_reason(error))).unwrap_or_default();
        Some(format!("{parts} parts of {of} overlap and must be merged first, the limit is {limit}{stalled}"))
    }

    /// Refuses requests to a closed or sealed store.
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.stop != Stop::Running {
            return Err(StoreError::Closed);
        }
        if let Some(cause) = &self.sealed {
            return Err(StoreError::Sealed { cause: cause.to_string() });
        }
        Ok(())
    }

    /// Freezes the open chunk of a table and begins a new one.
    pub(crate) fn freeze(&mut self, table: u32) {
        freeze(&mut self.tables[table as usize], &mut self.next_chunk, &mut self.memory);
    }

    /// Adds a tombstone, and freezes the open chunk if that may have rows which it hides (tombstone/mod.rs, rule 1).
    pub(crate) fn add_tombstone(&mut self, tombstone: Tombstone) {
        let open = &self.tables[tombstone.table as usize].open;
        if open.extent().is_some_and(|extent| tombstone.touches(&extent)) {
            self.freeze(tombstone.table);
        }
        self.tombstones.add(tombstone);
    }

    /// Makes appends and reads forget dropped series.
    pub(crate) fn forget_series(&mut self, dropped: &SeriesSet) {
        for id in dropped {
            // In a log with damage a series may be dropped that is not known.
            if let Some(series) = self.series.get_mut(id as usize) {
                series.forget_within((i64::MIN, i64::MAX), &mut self.latest);
                series.table = NO_TABLE;
            }
        }
    }

    /// Adds the state of the tables and series that are new in the catalog.
    pub(crate) fn follow_catalog(&mut self, origin: Origin) {
        while self.tables.len() < self.catalog.tables.len() {
            let open = Chunk::new(self.next_chunk);
            self.next_chunk += 1;
            self.tables.push(TableMemory { flushing: Vec::new(), frozen: Vec::new(), open });
        }
        let index = self.catalog.series.read();
        for id in self.series.len()..index.len() {
            let table = index.table(id as u32).expect("BUG: ids below the length are known");
            let table = if index.dropped().contains(id as u32) { NO_TABLE } else { table };
            self.series.push(SeriesState::new(table, origin));
        }
    }

    /// Drops latest values that were not used lately, until the bounds hold.
    pub(crate) fn bound_latest(&mut self, series_max: usize, bytes_max: usize) {
        while self.latest.is_over(series_max, bytes_max)
            && let Some(series) = self.latest.evict()
        {
            self.series[series as usize].forget();
        }
    }
}

impl TableMemory {
    /// Whether a chunk may have rows that a tombstone hides. With `flushed` the chunks that are being flushed do not count.
    pub(crate) fn may_have_hidden(&self, tombstone: &Tombstone, flushed: bool) -> bool {
        let flushing = if flushed { &[] } else { self.flushing.as_slice() };
        let mut chunks = flushing.iter().chain(&self.frozen).map(AsRef::as_ref).chain([&self.open]);
        chunks.any(|chunk: &Chunk| {
            let is_older = chunk.sequences().0 < tombstone.sequence;
            is_older && chunk.extent().is_some_and(|extent| tombstone.touches(&extent))
        })
    }

    /// The open chunk; a new one if the last one is full.
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
    // Readers freeze chunks as well. A panic here would lose rows.
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
        // The writers set these in the opposite order, so durable <= written <= appended always holds.
        let sealed = self.marks.sealed.load(Ordering::Acquire);
        let durable = self.marks.durable.load(Ordering::Acquire);
        let written = self.marks.written.load(Ordering::Acquire);
        let appended = self.marks.appended.load(Ordering::Acquire);
        Progress { appended, written, durable, sealed }
    }

    /// A new part number.
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

    /// Calls all watchers. The caller must not hold the lock of the state, because watchers may read.
    pub(crate) fn notify_watchers(&self) {
        let progress = self.progress();
        self.watchers.read().iter().for_each(|watcher| watcher.progress(progress));
    }

    /// Makes the store refuse all further writes. The store remembers the first cause.
    pub(crate) fn seal(&self, cause: StoreError) {
        let mut state = self.state.lock();
        state.sealed.get_or_insert(cause);
        self.marks.sealed.store(true, Ordering::Release);
        self.commit_work.notify_all();
        self.flush_work.notify_all();
        self.compact_work.notify_all();
        drop(state);
        self.notify_watchers();
    }

    /// Sets the failure that the log or the flush waits out; `None` when it does not wait any more.
    pub(crate) fn set_stalled(&self, index: usize, error: Option<&StoreError>) {
        let mut state = self.state.lock();
        let changed = state.stalled[index].is_some() != error.is_some();
        state.stalled[index] = error.cloned();
        drop(state);
        if changed {
            self.notify_watchers();
        }
    }
}
