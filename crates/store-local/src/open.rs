//! Opens a directory: locks it, reads its files, and builds the state that the threads continue with.

use std::path::Path;
use std::sync::Arc;

use model::FieldType;
use store::{Sequence, StoreError};

use crate::append_scratch::Scratch;
use crate::catalog::Catalog;
use crate::chunk::Numbers;
use crate::codec::Reader;
use crate::core::{Core, MemoryUse, Pending, State, Stop};
use crate::disk::{Disk, DiskLock, Layout, LockError, OpenMode, numbered};
use crate::entry::{Entry, Run};
use crate::latest::LatestPool;
use crate::log::acknowledged;
use crate::log::recover::{Replay, recover};
use crate::log::writer::Segments;
use crate::manifest::Manifest;
use crate::options::Options;
use crate::part::rows::CHUNKS_MAX;
use crate::part::{Part, PartInfo};
use crate::report::RecoveryReport;
use crate::row::{KeyId, read_field};
use crate::series_file::SeriesFile;
use crate::series_state::{NO_TABLE, Origin};
use crate::tombstone::{Tombstones, read_tombstone};
use crate::version::Version;
use crate::workers::{Committer, CommitterState, Compactor, Flusher};

/// A store without running threads.
pub(crate) struct Opened {
    pub(crate) core: Core,
    pub(crate) report: RecoveryReport,
    pub(crate) lock: Box<dyn DiskLock>,
    pub(crate) next_segment: u64,
    pub(crate) series_file: SeriesFile,
}

/// Reads the files of a directory and builds the state. Starts no thread.
pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path, mut options: Options) -> Result<Opened, StoreError> {
    options.chunk_rows = options.chunk_rows.clamp(1, CHUNKS_MAX);
    let layout = Layout::new(dir);
    let lock = take_directory(disk.as_ref(), &layout)?;
    let mut report = RecoveryReport::default();
    let mut state = empty_state();
    let (manifest, series_file) = open_files(disk.as_ref(), &layout, &mut state)?;
    state.follow_catalog(Origin::Before);
    let mut replay = MemoryReplay { state: &mut state, chunk_rows: options.chunk_rows };
    let covered = manifest.state.covered;
    let end = recover(disk.as_ref(), &layout, options.segment_bytes, covered, &mut replay, &mut report)?;
    check_end(disk.as_ref(), &layout, end.next_sequence - 1, &mut report)?;
    let next_part = 1 + largest_part(disk.as_ref(), &layout, &manifest)?;
    check_parts(disk.as_ref(), &layout, &manifest, &mut report)?;
    let sequence = end.next_sequence - 1;
    state.pending = Pending::new(end.next_frame, end.next_sequence);
    report.clean_shutdown |= end.live.is_empty();
    // A flush, so that later recoveries do not read the damaged log again.
    state.flusher.requested = u64::from(!report.damages.is_empty() || report.torn_tail.is_some());
    report.parts = manifest.parts.len() as u64;
    report.series = state.catalog.series.read().live() as u64;
    let next_segment = end.next_segment;
    let segments = Segments::new(end.live, end.spares);
    let core = Core::new(disk, layout, options, state, segments, sequence, (manifest, next_part));
    Ok(Opened { core, report, lock, next_segment, series_file })
}

fn take_directory(disk: &dyn Disk, layout: &Layout) -> Result<Box<dyn DiskLock>, StoreError> {
    for dir in [&layout.root, &layout.log, &layout.parts] {
        disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
    }
    let lock = disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { path: layout.root.clone(), holder },
        LockError::Io(error) => StoreError::io("write", layout.lock(), error),
    })?;
    // The names of the two directories must be durable before files in them are.
    disk.sync_dir(&layout.root).map_err(|error| StoreError::io("sync", &layout.root, error))?;
    Ok(lock)
}

/// Opens manifest and series file, or creates them in a new directory. Puts their parts and definitions into the state.
fn open_files(
    disk: &dyn Disk,
    layout: &Layout,
    state: &mut State,
) -> Result<(Manifest, SeriesFile), StoreError> {
    let (manifest, series) = match Manifest::open(disk, layout)? {
        Some(manifest) => {
            state.catalog.apply_all(&layout.manifest(), &manifest.state.definitions)?;
            let series = SeriesFile::open(disk, layout, manifest.state.series_bytes, &mut state.catalog)?;
            check_names(layout, &manifest, &state.catalog)?;
            // Only now that both files are known to be good: the open does not change a damaged directory.
            manifest.cut_unfinished()?;
            series.cut_unfinished()?;
            (manifest, series)
        }
        None => {
            let parts = list(disk, &layout.parts)?;
            if let Some(part) = parts.iter().find(|name| name.ends_with(".parquet")) {
                // The store creates the manifest before the first part. Without it the parts are not orphans.
                let reason = format!("the file is missing, but there are parts such as {part}");
                return Err(StoreError::Corrupt { path: layout.manifest(), offset: 0, reason });
            }
            let series = SeriesFile::create(disk, layout)?;
            (Manifest::create(disk, layout, series.bytes)?, series)
        }
    };
    manifest.state.deletions.iter().for_each(|deletion| state.tombstones.add_saved(deletion.clone()));
    state.tombstones.saved(manifest.state.covered.sequence, &[]);
    let parts = manifest.parts.values();
    let parts = parts.map(|info| Part::new(info.clone(), layout.part(info.id)));
    state.version = Arc::new(state.version.with(parts, &[]));
    Ok((manifest, series))
}

/// Refuses a manifest with parts of undefined tables or series, because readers rely on the definitions.
fn check_names(layout: &Layout, manifest: &Manifest, catalog: &Catalog) -> Result<(), StoreError> {
    let series = catalog.series.read().len();
    let unknown = |info: &PartInfo| {
        info.tables.1 as usize >= catalog.tables.len()
            || info.tables.0 > info.tables.1
            || info.series.1 as usize >= series
            || info.series.0 > info.series.1
    };
    let part = manifest.parts.values().find(|info| unknown(info));
    let part = part.map(|info| format!("part {} has a table or series that is not defined", info.id));
    let deletion = manifest.state.deletions.iter().find(|deletion| !deletion.is_defined(catalog));
    let deletion = deletion.map(|deletion| {
        format!("the deletion with the sequence {} has a table or key that is not defined", deletion.sequence)
    });
    match part.or(deletion) {
        None => Ok(()),
        Some(reason) => Err(StoreError::Corrupt { path: layout.manifest(), offset: 0, reason }),
    }
}

/// Reports a log that ends before the last acknowledged row. The log continues from its end, so this lowers the note.
fn check_end(
    disk: &dyn Disk,
    layout: &Layout,
    sequence: Sequence,
    report: &mut RecoveryReport,
) -> Result<(), StoreError> {
    let acknowledged = acknowledged::read(disk, layout).unwrap_or(0);
    let Some(missing) = acknowledged::missing(sequence + 1, acknowledged) else { return Ok(()) };
    report.damage(&layout.log, 0, &missing);
    acknowledged::lower(disk, layout, sequence)
}

/// The largest number of all part files, so that no number is used twice.
fn largest_part(disk: &dyn Disk, layout: &Layout, manifest: &Manifest) -> Result<u64, StoreError> {
    let files = list(disk, &layout.parts)?;
    let files = files.iter().filter_map(|name| numbered(name, ".parquet"));
    Ok(files.chain(manifest.parts.keys().copied()).max().unwrap_or(0))
}

/// Removes part files that no edit names, and reports parts whose files are missing.
fn check_parts(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &Manifest,
    report: &mut RecoveryReport,
) -> Result<(), StoreError> {
    // Before the removal of orphans, because an operator who lacks a part may need them.
    for (id, info) in &manifest.parts {
        let path = layout.part(*id);
        let len = disk.open(&path, OpenMode::Read).and_then(|file| file.len());
        match len {
            Ok(len) if len == info.bytes => {}
            Ok(len) => {
                report.damage(&path, len.min(info.bytes), &format!("{len} bytes instead of {}", info.bytes))
            }
            Err(error) => report.damage(&path, 0, &format!("cannot be opened: {error}")),
        }
    }
    let names = list(disk, &layout.parts)?;
    for name in &names {
        let known = numbered(name, ".parquet").is_some_and(|id| manifest.parts.contains_key(&id));
        let ours = numbered(name, ".parquet").is_some() || numbered(name, ".parquet.tmp").is_some();
        if ours && !known {
            let path = layout.parts.join(name);
            if name.ends_with(".parquet") && !report.damages.is_empty() {
                // Durable rows are missing, and the edit of this part may be the damaged one.
                let kept = layout.parts.join(format!("{name}.kept"));
                disk.rename(&path, &kept).map_err(|error| StoreError::io("rename", &path, error))?;
                report.damage(&path, 0, "the manifest does not name this part; it is kept as *.kept");
                continue;
            }
            disk.remove(&path).map_err(|error| StoreError::io("remove", &path, error))?;
            report.orphans.push(path);
        }
    }
    Ok(())
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    disk.list(dir).map_err(|error| StoreError::io("list", dir, error))
}

fn empty_state() -> State {
    State {
        catalog: Catalog::default(),
        series: Vec::new(),
        tables: Vec::new(),
        pending: Pending::new(0, 1),
        latest: LatestPool::default(),
        version: Arc::new(Version::default()),
        tombstones: Tombstones::default(),
        memory: MemoryUse::default(),
        committer: Committer { state: CommitterState::Working, sync_wanted: false, ended: false },
        flusher: Flusher::default(),
        compactor: Compactor::default(),
        scratch: Scratch::default(),
        // A new series has its head in chunk 0, so no chunk has this number.
        next_chunk: 1,
        expiries: 0,
        rows_appended: 0,
        stop: Stop::Running,
        sealed: None,
        stalled: [None, None],
    }
}

/// Puts recovered rows into the memtable.
struct MemoryReplay<'a> {
    state: &'a mut State,
    chunk_rows: usize,
}

impl Replay for MemoryReplay<'_> {
    fn replay(
        &mut self,
        entry: Entry<'_>,
        sequence: Sequence,
        covered: Sequence,
    ) -> Result<(), &'static str> {
        match entry {
            Entry::Row { series, ts, body } => self.row(series, ts, body, sequence),
            Entry::Run(run) => self.run(&run, sequence, covered),
            Entry::Deletion { .. } | Entry::DroppedSeries { .. } => self.deletion(entry, sequence),
            definition => {
                let catalog = &mut self.state.catalog;
                let applied = catalog.apply_unsaved(definition).map(drop);
                // This happens only after damage: the frame with earlier definitions is lost.
                let applied = applied.or_else(|_| {
                    catalog.fill_gaps(definition)?;
                    catalog.apply_unsaved(definition).map(drop)
                });
                self.state.follow_catalog(Origin::Before);
                if let Entry::DroppedTable { table } = definition {
                    let dropped = self.state.catalog.series.read().all_of(table);
                    self.state.forget_series(&dropped);
                }
                applied.map_err(|malformed| malformed.0)
            }
        }
    }
}

impl MemoryReplay<'_> {
    fn row(&mut self, series: u32, ts: i64, body: &[u8], sequence: Sequence) -> Result<(), &'static str> {
        self.check(series, body)?;
        if self.is_dropped(series) {
            return Ok(());
        }
        let State { series: all, tables, next_chunk, memory, .. } = &mut *self.state;
        let of_series = &mut all[series as usize];
        let chunk = tables[of_series.table as usize].open_chunk(self.chunk_rows, next_chunk, memory);
        let before = chunk.bytes();
        chunk.body_buffer().extend_from_slice(body);
        let previous = of_series.link(chunk.number, chunk.len() as u32);
        chunk.push(series, ts, sequence, previous);
        memory.active = memory.active + chunk.bytes() - before;
        Ok(())
    }

    /// Takes the rows of a run, without those whose series or column is not defined.
    fn run(&mut self, run: &Run<'_>, sequence: Sequence, covered: Sequence) -> Result<(), &'static str> {
        let mut refused = Ok(());
        for (index, (series, ts, value)) in run.rows().enumerate() {
            let sequence = sequence + index as u64;
            if sequence <= covered || self.is_dropped(series) {
                continue;
            }
            if let Err(reason) = self.check_column(series, run.key, FieldType::F64) {
                refused = Err(reason);
                continue;
            }
            let State { series: all, tables, next_chunk, memory, .. } = &mut *self.state;
            let of_series = &mut all[series as usize];
            let chunk = tables[of_series.table as usize].open_chunk(self.chunk_rows, next_chunk, memory);
            let before = chunk.bytes();
            let row = Numbers { key: run.key, series: &[series], ts: &[ts], values: &[value] };
            let number = chunk.number;
            match chunk.takes_numbers(run.key) {
                true => chunk.push_numbers(row, sequence, |_, row| of_series.link(number, row)),
                false => chunk.push_number_as_bytes(row, sequence, |row| of_series.link(number, row)),
            }
            memory.active = memory.active + chunk.bytes() - before;
        }
        refused
    }

    /// Takes a deletion. Those of the manifest come again.
    fn deletion(&mut self, entry: Entry<'_>, sequence: Sequence) -> Result<(), &'static str> {
        let tombstone = read_tombstone(sequence, entry).map_err(|malformed| malformed.0)?;
        if !tombstone.is_defined(&self.state.catalog) {
            return Err("a deletion's table or key is not defined");
        }
        if tombstone.ends_series {
            self.state.catalog.apply(entry).map_err(|malformed| malformed.0)?;
            self.state.forget_series(&tombstone.series);
        }
        self.state.add_tombstone(tombstone);
        Ok(())
    }

    /// Whether the manifest states that the series of a row in the log was dropped.
    fn is_dropped(&self, series: u32) -> bool {
        self.state.series.get(series as usize).is_some_and(|series| series.table == NO_TABLE)
    }

    /// Checks that every later read of a row will succeed. Otherwise the row does not enter memory.
    fn check(&self, series: u32, body: &[u8]) -> Result<(), &'static str> {
        self.state.series.get(series as usize).ok_or("a row's series is not defined")?;
        let mut reader = Reader::new(body);
        while !reader.is_empty() && !self.is_dropped(series) {
            let (key, value) = read_field(&mut reader).map_err(|malformed| malformed.0)?;
            self.check_column(series, key, value.field_type())?;
        }
        Ok(())
    }

    fn check_column(&self, series: u32, key: KeyId, field_type: FieldType) -> Result<(), &'static str> {
        let of_series = self.state.series.get(series as usize).ok_or("a row's series is not defined")?;
        let keys = &self.state.catalog.tables[of_series.table as usize].keys;
        let known = keys.get(key as usize).and_then(|key| key.column(field_type));
        known.map(drop).ok_or("a row's column is not defined")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::real::RealDisk;
    use crate::manifest::Edit;
    use crate::part::PartLayout;
    use crate::tombstone::Tombstone;

    /// Opens a store whose manifest has this edit and a table, with correct checksums.
    fn open_with_edit(edit: Edit) -> Option<StoreError> {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let options = Options { preallocate: false, ..Options::default() };
        drop(open(disk.clone(), dir.path(), options.clone()).unwrap());
        let mut definitions = Vec::new();
        Entry::Table { id: 0, name: "t" }.put(&mut definitions);
        let mut manifest = Manifest::open(disk.as_ref(), &Layout::new(dir.path())).unwrap().unwrap();
        let series_bytes = manifest.state.series_bytes;
        manifest.append(Edit { definitions, series_bytes, ..edit }).unwrap();
        open(disk, dir.path(), options).err()
    }

    /// Opens a store whose manifest names this part.
    fn open_with(info: PartInfo) -> Option<StoreError> {
        open_with_edit(Edit { added: vec![info], ..Edit::default() })
    }

    #[test]
    fn a_deletion_of_an_unknown_table_or_key_is_refused() {
        for (table, keys) in [(1, None), (0, Some(vec![0]))] {
            let one = Tombstone { table, keys, ..Tombstone::of_series(1, 0, [0].into_iter().collect()) };
            let deletions = vec![Arc::new(one)];
            let refused = open_with_edit(Edit { deletions, ..Edit::default() }).unwrap().to_string();
            assert!(refused.contains("manifest") && refused.contains("not defined"), "{refused}");
        }
    }

    #[test]
    fn a_part_of_an_unknown_table_or_series_is_refused_before_anything_is_made_for_it() {
        let part = |table, series| PartInfo {
            id: 1,
            layout: PartLayout::Wide,
            tables: (table, table),
            partition: (0, 1),
            rows: 1,
            bytes: 1,
            series,
            ts: (0, 0),
            sequence: (1, 1),
            applied: 0,
            points: 0,
            raw_bytes: 0,
            shares: Vec::new(),
            block_crcs: Vec::new(),
        };
        for info in [part(u32::MAX, (0, 0)), part(0, (0, u32::MAX)), part(0, (1, 0))] {
            let refused = open_with(info).unwrap().to_string();
            assert!(refused.contains("manifest") && refused.contains("not defined"), "{refused}");
        }
    }
}
