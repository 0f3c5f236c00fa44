//! Reads everything that a directory holds and says what is not as it must be. It changes no file.
//!
//! What an open takes on trust until it is asked for (the bytes of parts) is read here, and what it repairs by itself
//! (a torn tail, an orphan) is a note. Damage is named with file, offset, the rows that it concerns, and a remedy.

mod definitions;
mod directory;
pub(crate) mod live;
mod log;
mod part;
mod parts;
mod words;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use store::{ByteProgress, CheckReport, Finding, StoreError};

use crate::catalog::Catalog;
use crate::disk::{Disk, Layout, LockError, OpenMode, read_all};
use crate::log::acknowledged;
use crate::manifest::{ManifestContent, PartInfo};

/// Checks the directory of a store that is not open. The lock is held meanwhile, so that no store opens it.
///
/// `segment_bytes` is the size of the log segments of the store that wrote it ([`Options`](crate::Options)).
///
/// # Errors
/// [`StoreError::InUse`] when a process has the directory, [`StoreError::Io`] when it cannot be locked or listed.
/// Everything else that is wrong stands in the report.
pub fn check(
    disk: &dyn Disk,
    dir: &Path,
    segment_bytes: u64,
    progress: &mut ByteProgress<'_>,
) -> Result<CheckReport, StoreError> {
    let layout = Layout::new(dir);
    list(disk, &layout.root)?;
    let _lock = disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { path: layout.root.clone(), holder },
        LockError::Io(error) => StoreError::io("lock", layout.lock(), error),
    })?;
    check_unlocked(disk, dir, segment_bytes, progress)
}

/// As [`check`], of a directory that nobody can open meanwhile, such as a backup's.
///
/// # Errors
/// [`StoreError::Io`] when the directory cannot be listed.
pub fn check_unlocked(
    disk: &dyn Disk,
    dir: &Path,
    segment_bytes: u64,
    progress: &mut ByteProgress<'_>,
) -> Result<CheckReport, StoreError> {
    let layout = Layout::new(dir);
    let names = Names::list(disk, &layout)?;
    let mut check = Check::new(disk, &layout, progress);
    check.meter.total = names.bytes(disk, &layout);
    let segments = names.segments.iter().map(|number| (*number, None)).collect::<Vec<_>>();
    let Some(manifest) = check.stopped_manifest(&names)? else {
        return Ok(check.report);
    };
    let known = check.definitions(&manifest);
    if known {
        let acknowledged = acknowledged::read(disk, &layout);
        check.log(&manifest, &segments, segment_bytes, acknowledged);
    }
    check.directory(&names, &manifest);
    check.ranges(&manifest);
    let parts: Vec<Arc<PartInfo>> = manifest.parts.values().cloned().collect();
    check.parts(&parts, known);
    Ok(check.finish())
}

/// A check under way.
struct Check<'a, 'p> {
    disk: &'a dyn Disk,
    layout: &'a Layout,
    meter: Meter<'a, 'p>,
    report: CheckReport,
    catalog: Catalog,
    /// The store serves meanwhile: what a flush has begun is no leftover.
    live: bool,
}

/// Counts bytes for whoever watches.
struct Meter<'a, 'p> {
    done: u64,
    total: u64,
    progress: &'a mut ByteProgress<'p>,
    ended: bool,
}

impl Meter<'_, '_> {
    fn add(&mut self, bytes: u64) {
        self.done += bytes;
        self.total = self.total.max(self.done);
        self.ended |= (self.progress)(self.done, self.total) == ControlFlow::Break(());
    }
}

/// The names in the directories of a store.
struct Names {
    root: Vec<String>,
    log: Vec<String>,
    parts: Vec<String>,
    /// Numbers of the log segments, sorted.
    segments: Vec<u64>,
}

impl Names {
    fn list(disk: &dyn Disk, layout: &Layout) -> Result<Self, StoreError> {
        let log = list_or_nothing(disk, &layout.log)?;
        let segments = log.iter().filter_map(|name| crate::disk::numbered(name, ".log")).collect();
        let (root, parts) = (list(disk, &layout.root)?, list_or_nothing(disk, &layout.parts)?);
        Ok(Self { root, log, parts, segments })
    }

    /// Bytes that a check of all this reads: parts twice, for their checksums and for their rows.
    fn bytes(&self, disk: &dyn Disk, layout: &Layout) -> u64 {
        let len = |path: &Path| disk.open(path, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
        let segments = self.segments.iter().map(|number| len(&layout.segment(*number))).sum::<u64>();
        let parts = self.parts.iter().map(|name| len(&layout.parts.join(name))).sum::<u64>();
        len(&layout.manifest()) + len(&layout.series()) + segments + 2 * parts
    }
}

impl<'a, 'p> Check<'a, 'p> {
    fn new(disk: &'a dyn Disk, layout: &'a Layout, progress: &'a mut ByteProgress<'p>) -> Self {
        let meter = Meter { done: 0, total: 0, progress, ended: false };
        Self { disk, layout, meter, report: CheckReport::default(), catalog: Catalog::default(), live: false }
    }

    fn find(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// Adds what a store error says.
    fn fail(&mut self, error: &StoreError, means: &str, action: &str) {
        let finding = match error {
            StoreError::Corrupt { path, offset, reason } => {
                Finding::damage(path, Some(*offset), reason.clone())
            }
            StoreError::Io { path, verb, source } => {
                Finding::damage(path, None, format!("cannot {verb} it: {source}"))
            }
            other => Finding::damage(&self.layout.root, None, other.to_string()),
        };
        self.find(finding.with(means, action));
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let file =
            self.disk.open(path, OpenMode::Read).map_err(|error| StoreError::io("open", path, error))?;
        let bytes = read_all(file.as_ref()).map_err(|error| StoreError::io("read", path, error))?;
        self.meter.add(bytes.len() as u64);
        self.report.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// The manifest of a stopped store; `None` when the check ends here.
    fn stopped_manifest(&mut self, names: &Names) -> Result<Option<ManifestContent>, StoreError> {
        let has = |name: &str| names.root.iter().any(|found| found == name);
        let path = self.layout.manifest();
        if !has("manifest") && names.parts.is_empty() && names.segments.is_empty() {
            let what = "there is no manifest, and neither parts nor log: nothing was ever written here";
            self.find(Finding::note(path, what));
            return Ok(None);
        }
        match self.read(&path) {
            Ok(bytes) => Ok(self.manifest(&bytes)),
            Err(error) => {
                let means = "Without the manifest the store does not open and nothing is served. Parts and log are still there.";
                self.fail(&error, means, words::RESTORE);
                Ok(None)
            }
        }
    }

    fn finish(mut self) -> CheckReport {
        self.report.interrupted = self.meter.ended;
        self.report
    }
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    disk.list(dir).map_err(|error| StoreError::io("list", dir, error))
}

/// A backup without log has no directory for it.
fn list_or_nothing(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    match disk.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(|error| StoreError::io("list", dir, error)),
    }
}
