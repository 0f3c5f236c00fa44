//! Reads everything that a directory holds and says what is not as it must be. It changes no file.
//!
//! What an open takes on trust until it is asked for (the bytes of parts) is read here, and what it repairs by itself
//! (a torn tail, an orphan) is a note. Damage is named with file, offset, the rows that it concerns, and a remedy.

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
