//! Why a store could not do what was asked, and whose turn it is.

use std::io;
use std::path::PathBuf;

use model::{NameError, SeriesId};

/// An error of a store. Text is for people; code asks [`StoreError::blame`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A name breaks the rules.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The request is larger than a limit allows.
    #[error("{what} is {actual}, the limit is {limit}")]
    OverLimit {
        /// What was counted.
        what: &'static str,
        /// What it counted to.
        actual: u64,
        /// The limit.
        limit: u64,
    },
    /// A series id that this store never gave out.
    #[error("series {0:?} is unknown to this store")]
    UnknownSeries(SeriesId),
    /// There is no room at the moment; the same request will succeed later.
    #[error("busy: {reason}")]
    Busy {
        /// Which bound was met, with its numbers.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said. Shared, because the error that sealed a store is told to every later caller.
        #[source]
        source: std::sync::Arc<io::Error>,
    },
    /// A file does not hold what it must.
    #[error("corrupt {} at byte {offset}: {reason}", .path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Another process has the directory.
    #[error("{} is in use by {holder}; stop it or choose another directory", .path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// Who holds it, such as "process 4711".
        holder: String,
    },
    /// An earlier write failed, so nothing more is written; reads go on.
    #[error("read-only since an earlier write failed ({cause}); repair the cause and restart to recover")]
    Sealed {
        /// The first failure.
        cause: String,
    },
    /// This kind of store cannot do that.
    #[error("this store has no files to {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The request is wrong; repeating it will not help.
    Caller,
    /// Nobody; the same request will succeed later.
    Busy,
    /// Whoever runs the machine.
    Operator,
}

impl StoreError {
    /// Wraps an I/O error with what was tried on which file.
    pub fn io(verb: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { verb, path: path.into(), source: std::sync::Arc::new(source) }
    }

    /// Whether a sync failed. Then nothing is known about what was written before it, and no retry can tell. A directory
    /// that could not be opened for its sync was not synced at all: that is no failed sync.
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::Io { verb: "sync", source, .. } if !is_out_of_descriptors(source))
    }

    /// Whether the machine lacked something that comes back by itself (space, quota, descriptors, memory), and nothing was
    /// left half done: the same step may be tried again.
    pub fn is_transient(&self) -> bool {
        !self.is_sync() && matches!(self, Self::Io { source, .. } if is_transient(source))
    }

    /// Whose turn it is. No wildcard arm: a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Name(_) | Self::OverLimit { .. } | Self::UnknownSeries(_) | Self::Unsupported { .. } => {
                Blame::Caller
            }
            Self::Busy { .. } => Blame::Busy,
            Self::Io { .. } if self.is_transient() => Blame::Busy,
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::InUse { .. }
            | Self::Sealed { .. }
            | Self::Closed => Blame::Operator,
        }
    }
}

/// Whether an error of the system is a lack that passes by itself: space, quota, descriptors, memory.
pub fn is_transient(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::OutOfMemory];
    kinds.contains(&error.kind()) || is_out_of_descriptors(error)
}

/// Only calls that open something fail so. The standard library has no kind for it.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_passes_by_itself_and_a_failed_sync_does_not() {
        let error = |verb, errno| StoreError::io(verb, "/x", io::Error::from_raw_os_error(errno));
        for errno in [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            let error = error("write", errno);
            assert!(error.is_transient() && error.blame() == Blame::Busy, "{error}");
        }
        for errno in [libc::EMFILE, libc::ENFILE] {
            assert!(error("sync", errno).is_transient(), "the directory was not opened");
        }
        for errno in [libc::ENOSPC, libc::EDQUOT, libc::ENOMEM, libc::EIO] {
            let error = error("sync", errno);
            assert!(error.is_sync() && !error.is_transient() && error.blame() == Blame::Operator, "{error}");
        }
        assert!(!error("write", libc::EIO).is_transient());
    }

    #[test]
    fn a_full_disk_is_nobodys_fault_and_a_broken_one_the_operators() {
        let full = StoreError::io("write", "/x/log", io::Error::from(io::ErrorKind::StorageFull));
        let broken = StoreError::io("sync", "/x/log", io::Error::from(io::ErrorKind::Other));
        assert_eq!((full.blame(), broken.blame()), (Blame::Busy, Blame::Operator));
        assert!(broken.to_string().starts_with("cannot sync /x/log"));
    }
}
