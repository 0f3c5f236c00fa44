//! Opening a directory: take it, read what is there, and build the state that the threads go on with.

use std::path::Path;
use std::sync::Arc;

use store::{Sequence, StoreError};

use crate::catalog::Catalog;
use crate::chunk::NO_ROW;
use crate::codec::Reader;
use crate::core::{Committer, Core, Doing, Flusher, LatestUse, MemoryUse, Pending, State, Stop, freeze};
use crate::disk::{Disk, DiskLock, Layout, LockError};
use crate::entry::Entry;
use crate::log::recover::{Covered, Replay, recover};
use crate::log::writer::Segments;
use crate::options::Options;
use crate::report::RecoveryReport;
use crate::row::read_field;
use crate::version::Version;

/// A store whose threads have not been started.
pub(crate) struct Opened {
    pub(crate) core: Core,
    pub(crate) report: RecoveryReport,
    pub(crate) lock: Box<dyn DiskLock>,
    pub(crate) next_segment: u64,
}

/// Reads everything a directory holds.
pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path, options: Options) -> Result<Opened, StoreError> {
    let layout = Layout::new(dir);
    let lock = take_directory(disk.as_ref(), &layout)?;
    let mut report = RecoveryReport::default();
    let mut state = empty_state();
    let spare_bytes = if options.preallocate { options.segment_bytes } else { u64::MAX };
    let mut replay = MemoryReplay { state: &mut state, chunk_rows: options.chunk_rows };
    let end = recover(disk.as_ref(), &layout, spare_bytes, Covered::default(), &mut replay, &mut report)?;
    let sequence = end.next_sequence - 1;
    state.pending = Pending::new(end.next_frame, end.next_sequence);
    report.clean_shutdown |= end.live.is_empty();
    report.series = state.catalog.series.len() as u64;
    let next_segment = end.next_segment;
    let segments = Segments::new(end.live, end.spare);
    let core = Core::new(disk, layout, options, state, segments, sequence);
    Ok(Opened { core, report, lock, next_segment })
}

fn take_directory(disk: &dyn Disk, layout: &Layout) -> Result<Box<dyn DiskLock>, StoreError> {
    for dir in [&layout.root, &layout.log, &layout.parts] {
        disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
    }
    let lock = disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { path: layout.root.clone(), holder },
        LockError::Io(error) => StoreError::io("write", layout.lock(), error),
    })?;
    // The two directories must not vanish with the first files in them.
    disk.sync_dir(&layout.root).map_err(|error| StoreError::io("sync", &layout.root, error))?;
    Ok(lock)
}

fn empty_state() -> State {
    State {
        catalog: Catalog::default(),
        series: Vec::new(),
        tables: Vec::new(),
        pending: Pending::new(0, 1),
        latest: LatestUse::default(),
        version: Arc::new(Version::default()),
        memory: MemoryUse::default(),
        committer: Committer { doing: Doing::Working, sync_wanted: false, ended: false },
        flusher: Flusher::default(),
        scratch: Vec::new(),
        // Series begin with a head in chunk 0, which therefore never exists.
        next_chunk: 1,
        rows_appended: 0,
        stop: Stop::Running,
        sealed: None,
        full: [None, None],
    }
}

/// Puts recovered rows into the memtable.
struct MemoryReplay<'a> {
    state: &'a mut State,
    chunk_rows: usize,
}

impl Replay for MemoryReplay<'_> {
    fn replay(&mut self, entry: Entry<'_>, sequence: Sequence) -> Result<(), &'static str> {
        let Entry::Row { series, ts, body } = entry else {
            self.state.catalog.apply_unsaved(entry).map_err(|malformed| malformed.0)?;
            self.state.follow_catalog(false);
            return Ok(());
        };
        self.check(series, body)?;
        let State { series: all, tables, next_chunk, memory, .. } = &mut *self.state;
        let place = &mut all[series as usize];
        let table = &mut tables[place.table as usize];
        if table.open.is_full(self.chunk_rows) {
            freeze(table, next_chunk, memory);
        }
        let before = table.open.bytes();
        table.open.body_buffer().extend_from_slice(body);
        let previous = if place.head_chunk == table.open.number { place.head_row } else { NO_ROW };
        place.head_row = table.open.len() as u32;
        place.head_chunk = table.open.number;
        table.open.push(series, ts, sequence, previous);
        memory.active = memory.active + table.open.bytes() - before;
        Ok(())
    }
}

impl MemoryReplay<'_> {
    /// A row enters memory only if every later read of it will succeed.
    fn check(&self, series: u32, body: &[u8]) -> Result<(), &'static str> {
        let place = self.state.series.get(series as usize).ok_or("a row's series is not defined")?;
        let keys = &self.state.catalog.tables[place.table as usize].keys;
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            let (key, value) = read_field(&mut reader).map_err(|malformed| malformed.0)?;
            let known = keys.get(key as usize).and_then(|key| key.column(value.field_type()));
            known.ok_or("a row's column is not defined")?;
        }
        Ok(())
    }
}
