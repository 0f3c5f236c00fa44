//! The files of a store at one moment: of an open store, or of the directory of a stopped one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Finding, Sequence, StoreError, StoreFile, StoreFiles};

use crate::core::{Core, STALLED_FLUSH};
use crate::disk::{Disk, DiskFile, DiskLock, Layout, LockError, OpenMode, numbered, read_all};
use crate::entry::Entry;
use crate::log::acknowledged::{self, missing};
use crate::log::recover::{Replay, Walk};
use crate::manifest::{ManifestContent, put_dropped};
use crate::part::PartInfo;
use crate::part::blocks::BLOCK_BYTES;
use crate::report::RecoveryReport;
use crate::stall::stall_reason;
use crate::version::Version;

/// The largest number of attempts, because a flush may change the manifest between two reads.
const ATTEMPTS_MAX: usize = 100;

struct Pinned {
    disk: Arc<dyn Disk>,
    files: Vec<StoreFile>,
    contents: Vec<Content>,
    /// The open file. Callers read one file after the other.
    open: Mutex<Option<(usize, Arc<dyn DiskFile>)>>,
    /// Prevents the removal of the parts.
    _version: Option<Arc<Version>>,
    /// Prevents an open of the store.
    _lock: Option<Box<dyn DiskLock>>,
}

enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
}

impl StoreFiles for Pinned {
    fn files(&self) -> &[StoreFile] {
        &self.files
    }

    fn read_at(&self, file: usize, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError> {
        let left = self.files[file].bytes.saturating_sub(offset);
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..wanted];
        let path = match &self.contents[file] {
            Content::Bytes(bytes) => {
                let start = offset as usize;
                buffer.copy_from_slice(&bytes[start..start + wanted]);
                return Ok(wanted);
            }
            Content::File(path) => path,
        };
        let handle = self.handle(file, path)?;
        handle.read_at(buffer, offset).map_err(|error| StoreError::io("read", path, error))
    }
}

impl Pinned {
    fn new(disk: Arc<dyn Disk>, version: Option<Arc<Version>>, lock: Option<Box<dyn DiskLock>>) -> Self {
        let (files, contents, open) = (Vec::new(), Vec::new(), Mutex::default());
        Self { disk, files, contents, open, _version: version, _lock: lock }
    }

    fn handle(&self, file: usize, path: &Path) -> Result<Arc<dyn DiskFile>, StoreError> {
        let mut open = self.open.lock();
        if let Some((at, handle)) = &*open
            && *at == file
        {
            return Ok(handle.clone());
        }
        let handle =
            self.disk.open(path, OpenMode::Read).map_err(|error| StoreError::io("open", path, error))?;
        *open = Some((file, handle.clone()));
        Ok(handle)
    }

    fn push(&mut self, name: String, bytes: u64, crc: Option<u32>, content: Content) {
        self.files.push(StoreFile { name, bytes, crc });
        self.contents.push(content);
    }

    /// Adds the whole records of the manifest with a mark at the end, and the series file as far as the manifest names it.
    fn push_definitions(&mut self, layout: &Layout, mut manifest: Vec<u8>, content: &ManifestContent) {
        manifest.truncate(content.end as usize);
        // A mark must follow the last edit (manifest.rs, invariant 3).
        put_dropped(&mut manifest, &content.state, Vec::new());
        self.push("manifest".to_owned(), manifest.len() as u64, None, Content::Bytes(manifest));
        let series = content.state.series_bytes;
        self.push("series".to_owned(), series, None, Content::File(layout.series()));
    }

    fn push_parts(&mut self, layout: &Layout, content: &ManifestContent) {
        for part in content.parts.values() {
            let name = format!("parts/{:016x}.parquet", part.id);
            self.push(name, part.bytes, Some(whole_crc(part)), Content::File(layout.part(part.id)));
        }
    }
}

/// The checksum of all bytes of a part, computed from those of its blocks.
pub(super) fn whole_crc(part: &PartInfo) -> u32 {
    let mut crc = 0;
    let mut left = part.bytes;
    for block in &part.block_crcs {
        let bytes = left.min(BLOCK_BYTES as u64);
        crc = crc32c::crc32c_combine(crc, *block, bytes as usize);
        left -= bytes;
    }
    crc
}

/// The files of an open store. The store first flushes the rows in memory, so the log is not among the files.
pub(crate) fn live_files(core: &Core) -> Result<Box<dyn StoreFiles>, StoreError> {
    flush_unless_full(core)?;
    let path = core.layout.manifest();
    for _ in 0..ATTEMPTS_MAX {
        let version = core.state.lock().version.clone();
        let file = core.disk.open(&path, OpenMode::Read);
        let bytes = file.and_then(|file| read_all(file.as_ref()));
        let bytes = bytes.map_err(|error| StoreError::io("read", &path, error))?;
        let content = ManifestContent::read(&path, &bytes)?;
        if !version.has_exactly(&content) {
            // An edit is in the file, but not in the version yet.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let mut pinned = Pinned::new(core.disk.clone(), Some(version), None);
        pinned.push_definitions(&core.layout, bytes, &content);
        pinned.push_parts(&core.layout, &content);
        return Ok(Box::new(pinned));
    }
    Err(StoreError::Busy { reason: "parts change faster than they can be listed; try again".to_owned() })
}

/// Flushes, but does not wait while the disk is full.
fn flush_unless_full(core: &Core) -> Result<(), StoreError> {
    let mut state = core.state.lock();
    state.check_open()?;
    let requested = core.request_urgent_flush(&mut state);
    while state.flusher.completed < requested {
        state.check_open()?;
        if let Some(error) = &state.stalled[STALLED_FLUSH] {
            return Err(StoreError::Busy { reason: stall_reason(error) });
        }
        core.flush_work.wait_for(&mut state, Duration::from_millis(100));
    }
    Ok(())
}

/// The files of a store that is not open, with the log, and findings about the log. No store can open the directory while
/// the answer lives.
///
/// # Errors
/// [`StoreError::InUse`] when a process uses the directory; [`StoreError::Corrupt`] when the manifest is damaged;
/// [`StoreError::Io`].
pub fn stopped_files(
    disk: Arc<dyn Disk>,
    dir: &Path,
    segment_bytes: u64,
) -> Result<(Box<dyn StoreFiles>, Vec<Finding>), StoreError> {
    let layout = Layout::new(dir);
    disk.list(dir).map_err(|error| StoreError::io("list", dir, error))?;
    let lock = disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { path: layout.root.clone(), holder },
        LockError::Io(error) => StoreError::io("lock", layout.lock(), error),
    })?;
    let read = |path: &Path| {
        let file = disk.open(path, OpenMode::Read).and_then(|file| read_all(file.as_ref()));
        file.map_err(|error| StoreError::io("read", path, error))
    };
    let bytes = read(&layout.manifest())?;
    let content = ManifestContent::read(&layout.manifest(), &bytes)?;
    let mut pinned = Pinned::new(disk.clone(), None, Some(lock));
    pinned.push_definitions(&layout, bytes, &content);
    let mut report = RecoveryReport::default();
    let mut nothing = Nothing;
    let mut walk = Walk::new(content.state.covered, segment_bytes, &mut nothing, &mut report);
    let names = disk.list(&layout.log).map_err(|error| StoreError::io("list", &layout.log, error))?;
    for (name, number) in names.iter().filter_map(|name| Some((name, numbered(name, ".log")?))) {
        let path = layout.segment(number);
        // The bytes after the last frame were never acknowledged, or are of an earlier use.
        if let Some(segment) = walk.segment(number, &path, &read(&path)?)? {
            pinned.push(format!("log/{name}"), segment.bytes, None, Content::File(path));
        }
    }
    walk.finish();
    let next = walk.next_sequence();
    if let Some(missing) = acknowledged::read(disk.as_ref(), &layout).and_then(|end| missing(next, end)) {
        report.damage(&layout.log, 0, &missing);
    }
    pinned.push_parts(&layout, &content);
    let damages = report.damages.iter().map(|damage| match damage {
        StoreError::Corrupt { path, offset, reason } => Finding::damage(path, Some(*offset), reason.clone()),
        other => Finding::damage(&layout.log, None, other.to_string()),
    });
    Ok((Box::new(pinned), damages.collect()))
}

/// Ignores the entries of the log, because only frames and sequences count here.
struct Nothing;

impl Replay for Nothing {
    fn replay(
        &mut self,
        _entry: Entry<'_>,
        _sequence: Sequence,
        _covered: Sequence,
    ) -> Result<(), &'static str> {
        Ok(())
    }
}
