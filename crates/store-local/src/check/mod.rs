//! Checks all files of a directory and reports every deviation. It changes no file.
//!
//! The check reads the bytes of parts, which an open does not read. A deviation that an open repairs by itself (a torn tail,
//! an orphan) is a note. A finding of damage names the file, the offset, the affected rows and a remedy.

mod checker;
mod definitions;
mod directory;
pub(crate) mod live;
mod log;
mod part;
mod parts;
mod words;

use std::path::Path;
use std::sync::Arc;

use checker::{Checker, Names, list};
use store::{ByteProgress, CheckReport, StoreError};

use crate::disk::{Disk, Layout, LockError};
use crate::log::acknowledged;
use crate::part::PartInfo;

/// Checks the directory of a store that is not open. Holds the lock during the check, so that no store opens the directory.
///
/// `segment_bytes` is the size of the log segments of the store that wrote the directory ([`Options`](crate::Options)).
///
/// # Errors
/// [`StoreError::InUse`] when a process uses the directory, [`StoreError::Io`] when it cannot be locked or listed. All other
/// problems are in the report.
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

/// Like [`check`], without a lock: for a directory that no store can open, such as a backup.
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
    let mut check = Checker::new(disk, &layout, progress);
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
