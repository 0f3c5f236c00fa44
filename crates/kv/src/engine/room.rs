//! The room in the file system.
//!
//! The store refuses batches while less than a reserve is free. The reserve is for merges and for the files of batches that are in
//! memory, so fjall rarely meets a full disk.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::FallocateFlags;

/// Bytes that stay free.
const RESERVE_BYTES: u64 = 64 << 20;

/// On a small file system the reserve is this part of it.
const RESERVE_DIVISOR: u64 = 16;

/// The file system is asked again after this time.
const FRESH: Duration = Duration::from_millis(100);

/// Bytes that a probe allocates at most.
const PROBE_BYTES: u64 = 8 << 20;

/// The file of a probe. fjall ignores it.
const PROBE_FILE: &str = "probe.tmp";

/// The room in the file system of a directory.
pub(super) struct Room {
    directory: PathBuf,
    last: Mutex<Option<Answer>>,
}

/// The last answer of the file system.
struct Answer {
    at: Instant,
    free: Free,
    /// Bytes of batches since then.
    written: u64,
}

#[derive(Clone, Copy)]
struct Free {
    bytes: u64,
    reserve: u64,
}

impl Room {
    pub(super) fn new(directory: &Path) -> Self {
        // A process that was killed may have left it.
        drop(fs::remove_file(directory.join(PROBE_FILE)));
        Self { directory: directory.to_owned(), last: Mutex::new(None) }
    }

    /// Why there is no room for this number of bytes; `None` if there is.
    pub(super) fn lack_for(&self, bytes: u64) -> Option<String> {
        let mut last = self.last.lock();
        let is_fresh = |answer: &Answer| {
            answer.at.elapsed() < FRESH && answer.written + bytes <= answer.free.reserve / 4
        };
        if !last.as_ref().is_some_and(is_fresh) {
            *last = Some(Answer { at: Instant::now(), free: self.free()?, written: 0 });
        }
        let answer = last.as_mut()?;
        let Free { bytes: free, reserve } = answer.free;
        if free.saturating_sub(answer.written) < reserve.saturating_add(bytes) {
            let directory = self.directory.display();
            return Some(format!(
                "no space left on {directory}: {free} bytes are free, {reserve} stay free; writing goes on when there is room"
            ));
        }
        answer.written += bytes;
        None
    }

    /// Allocates a file of some bytes and removes it: finds a lack that the file system does not tell, of quota and of descriptors.
    pub(super) fn probe(&self) -> io::Result<()> {
        let path = self.directory.join(PROBE_FILE);
        let file = File::create(&path)?;
        let bytes = self.free().map_or(PROBE_BYTES, |free| free.reserve.min(PROBE_BYTES));
        let allocated = rustix::fs::fallocate(file.as_fd(), FallocateFlags::empty(), 0, bytes);
        drop(file);
        fs::remove_file(&path)?;
        match allocated {
            // Some file systems cannot allocate without writing.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// `None` if the file system does not tell, or has no bound.
    fn free(&self) -> Option<Free> {
        let answer = rustix::fs::statvfs(&self.directory).ok()?;
        let reserve = RESERVE_BYTES.min(answer.f_blocks.saturating_mul(answer.f_frsize) / RESERVE_DIVISOR);
        (reserve > 0).then_some(Free { bytes: answer.f_bavail.saturating_mul(answer.f_frsize), reserve })
    }
}
