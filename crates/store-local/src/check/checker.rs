//! The state of a check: what it has read, and its findings so far.

use std::ops::ControlFlow;
use std::path::Path;

use store::{ByteProgress, CheckReport, Finding, StoreError};

use super::words;
use crate::catalog::Catalog;
use crate::disk::{Disk, Layout, OpenMode, read_all};
use crate::manifest::ManifestContent;

/// A check in progress.
pub(super) struct Checker<'a, 'p> {
    pub(super) disk: &'a dyn Disk,
    pub(super) layout: &'a Layout,
    pub(super) meter: Meter<'a, 'p>,
    pub(super) report: CheckReport,
    pub(super) catalog: Catalog,
    /// The store is open meanwhile, so the files of a flush that has begun are not leftovers.
    pub(super) live: bool,
}

/// Counts the bytes that were read, and reports them to the caller.
pub(super) struct Meter<'a, 'p> {
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) progress: &'a mut ByteProgress<'p>,
    pub(super) ended: bool,
}

impl Meter<'_, '_> {
    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        self.total = self.total.max(self.done);
        self.ended |= (self.progress)(self.done, self.total) == ControlFlow::Break(());
    }
}

/// The names in the directories of a store.
pub(super) struct Names {
    pub(super) root: Vec<String>,
    pub(super) log: Vec<String>,
    pub(super) parts: Vec<String>,
    /// Numbers of the log segments, sorted.
    pub(super) segments: Vec<u64>,
}

impl Names {
    pub(super) fn list(disk: &dyn Disk, layout: &Layout) -> Result<Self, StoreError> {
        let log = list_or_nothing(disk, &layout.log)?;
        let segments = log.iter().filter_map(|name| crate::disk::numbered(name, ".log")).collect();
        let (root, parts) = (list(disk, &layout.root)?, list_or_nothing(disk, &layout.parts)?);
        Ok(Self { root, log, parts, segments })
    }

    /// Bytes that a check of these files reads. It reads parts twice: for their checksums and for their rows.
    pub(super) fn bytes(&self, disk: &dyn Disk, layout: &Layout) -> u64 {
        let len = |path: &Path| disk.open(path, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
        let segments = self.segments.iter().map(|number| len(&layout.segment(*number))).sum::<u64>();
        let parts = self.parts.iter().map(|name| len(&layout.parts.join(name))).sum::<u64>();
        len(&layout.manifest()) + len(&layout.series()) + segments + 2 * parts
    }
}

impl<'a, 'p> Checker<'a, 'p> {
    pub(super) fn new(disk: &'a dyn Disk, layout: &'a Layout, progress: &'a mut ByteProgress<'p>) -> Self {
        let meter = Meter { done: 0, total: 0, progress, ended: false };
        Self { disk, layout, meter, report: CheckReport::default(), catalog: Catalog::default(), live: false }
    }

    pub(super) fn find(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// Adds a finding for a store error.
    pub(super) fn fail(&mut self, error: &StoreError, means: &str, action: &str) {
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

    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let file =
            self.disk.open(path, OpenMode::Read).map_err(|error| StoreError::io("open", path, error))?;
        let bytes = read_all(file.as_ref()).map_err(|error| StoreError::io("read", path, error))?;
        self.meter.add(bytes.len() as u64);
        self.report.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// The manifest of a stopped store; `None` when the check ends here.
    pub(super) fn stopped_manifest(&mut self, names: &Names) -> Result<Option<ManifestContent>, StoreError> {
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

    pub(super) fn finish(mut self) -> CheckReport {
        self.report.interrupted = self.meter.ended;
        self.report
    }
}

pub(super) fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    disk.list(dir).map_err(|error| StoreError::io("list", dir, error))
}

/// A backup without log has no directory for it.
fn list_or_nothing(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    match disk.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(|error| StoreError::io("list", dir, error)),
    }
}
