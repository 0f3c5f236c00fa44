//! The lock of a data directory. A server holds it while it runs, so two processes never use one directory.

use std::path::Path;

use store::StoreError;
use store_local::{Disk, DiskLock, LockError, RealDisk};

use super::layout::store_directory;

/// The file that the store locks, in the store's directory.
const LOCK_FILE: &str = "LOCK";

/// Locks a data directory without opening its store: no server starts on it until the lock is dropped.
pub(super) fn lock(data: &Path) -> Result<Box<dyn DiskLock>, StoreError> {
    let directory = store_directory(data);
    RealDisk.create_dir(&directory).map_err(|error| StoreError::io("create", &directory, error))?;
    let path = directory.join(LOCK_FILE);
    RealDisk.lock(&path).map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { path: directory, holder },
        LockError::Io(error) => StoreError::io("write", path, error),
    })
}

/// The process that holds the lock of a data directory, as the lock file names it; `None` if no process holds it.
/// Changes nothing.
pub(crate) fn holder(data: &Path) -> Option<String> {
    let file = std::fs::File::open(store_directory(data).join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => {
            Some(std::io::read_to_string(file).unwrap_or_default().trim().to_owned())
        }
        _ => None,
    }
}
