//! The lock of a data directory. A server holds it while it runs, so two processes never use one directory.

use std::path::Path;
use std::time::Instant;

use store::StoreError;
use store_local::{Disk, DiskLock, LockError, RealDisk};

use super::layout::store_directory;
use crate::limits::{ENDING_PROCESS_PAUSE, ENDING_PROCESS_WAIT};

/// The file that the store locks, in the store's directory.
const LOCK_FILE: &str = "LOCK";

/// Locks a data directory without opening its store: no server starts on it until the lock is dropped.
pub(super) fn lock(data: &Path) -> Result<Box<dyn DiskLock>, StoreError> {
    let directory = store_directory(data);
    RealDisk.create_dir(&directory).map_err(|error| StoreError::io("create", &directory, error))?;
    let path = directory.join(LOCK_FILE);
    wait_for_ending_process(data);
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

/// Waits while the process that holds the lock is ending. A killed process holds it until the kernel has freed its memory and its last
/// write has returned. A process that runs is not waited for.
pub(super) fn wait_for_ending_process(data: &Path) {
    let end = Instant::now() + ENDING_PROCESS_WAIT;
    while holder(data).is_some_and(|process| is_ending(&process)) && Instant::now() < end {
        std::thread::sleep(ENDING_PROCESS_PAUSE);
    }
}

/// Whether a process has ended, or gets no further because SIGKILL is pending. `false` if there is no such process here.
fn is_ending(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/status")).is_ok_and(|status| is_status_of_end(&status))
}

/// The same from the kernel's description of the process.
fn is_status_of_end(status: &str) -> bool {
    /// SIGKILL in a set of signals.
    const SIGKILL: u64 = 1 << 8;
    status.lines().filter_map(|line| line.split_once(':')).any(|(name, value)| match name {
        "State" => matches!(value.trim().chars().next(), Some('Z' | 'X')),
        "SigPnd" | "ShdPnd" => {
            u64::from_str_radix(value.trim(), 16).is_ok_and(|signals| signals & SIGKILL != 0)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_when_it_is_a_zombie_or_sigkill_is_pending() {
        let status = |state: &str, own: &str, shared: &str| {
            format!("Name:\ttacho\nState:\t{state}\nThreads:\t4\nSigPnd:\t{own}\nShdPnd:\t{shared}\n")
        };
        let none = "0000000000000000";
        assert!(!is_status_of_end(&status("S (sleeping)", none, none)));
        assert!(!is_status_of_end(&status("D (disk sleep)", "0000000000004000", none)), "SIGTERM");
        assert!(is_status_of_end(&status("Z (zombie)", none, none)));
        assert!(is_status_of_end(&status("D (disk sleep)", "0000000000000100", none)));
        assert!(is_status_of_end(&status("D (disk sleep)", none, "0000000000000100")));
    }

    #[test]
    fn a_process_that_runs_is_not_ending_nor_is_one_that_does_not_exist() {
        assert!(!is_ending(&std::process::id().to_string()));
        assert!(!is_ending("4194999"));
        assert!(!is_ending(""));
    }
}
