//! The errors of a key-value store, and who must act on each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use model::Blame;

/// An error of a key-value store. The text is for people; code uses [`KvError::blame`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum KvError {
    /// The name of a space breaks the rules for names.
    #[error("space {0:?}: a name has 1 to 32 characters of a-z and _")]
    SpaceName(String),
    /// A key without bytes.
    #[error("a key has at least one byte")]
    EmptyKey,
    /// The request is larger than a limit allows.
    #[error("{what} is {actual}, the limit is {limit}")]
    OverLimit {
        /// The quantity that is limited.
        what: &'static str,
        /// Its value in the request.
        actual: u64,
        /// The limit.
        limit: u64,
    },
    /// The store has no room at the moment. The same request will succeed later.
    #[error("busy: {reason}")]
    Busy {
        /// The bound that was reached, with its numbers.
        reason: String,
    },
    /// A call of the operating system failed.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// The operation that failed.
        verb: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The content of a file is wrong.
    #[error("corrupt {}: {reason}", .path.display())]
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong there.
        reason: String,
    },
    /// Another process uses the directory.
    #[error("{} is in use by another process; stop it or choose another directory", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A dump cannot be read.
    #[error("the dump of keys is damaged at byte {offset}: {reason}")]
    Dump {
        /// The position in the dump.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A stream of a dump failed.
    #[error("cannot {verb} the dump of keys: {source}")]
    DumpIo {
        /// The operation that failed.
        verb: &'static str,
        /// The error of the stream.
        #[source]
        source: Arc<io::Error>,
    },
    /// An import into a store that has keys.
    #[error("the key-value store is not empty")]
    NotEmpty,
    /// An earlier write failed, so the store writes nothing more. Reads continue.
    #[error("read-only since an earlier write failed ({cause}); repair the cause and restart to recover")]
    Sealed {
        /// The first failure.
        cause: String,
    },
    /// The store was closed.
    #[error("the key-value store is closed")]
    Closed,
}

impl KvError {
    /// An I/O error with the operation and the file.
    pub fn io(verb: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { verb, path: path.into(), source: Arc::new(source) }
    }

    /// Refuses what is larger than its limit.
    pub(crate) fn check_limit(what: &'static str, actual: usize, limit: usize) -> Result<(), Self> {
        match actual > limit {
            true => Err(Self::OverLimit { what, actual: actual as u64, limit: limit as u64 }),
            false => Ok(()),
        }
    }

    /// Who must act. The match has no wildcard arm, so that a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::SpaceName(_)
            | Self::EmptyKey
            | Self::OverLimit { .. }
            | Self::Dump { .. }
            | Self::NotEmpty => Blame::Caller,
            Self::Busy { .. } => Blame::Busy,
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::InUse { .. }
            | Self::DumpIo { .. }
            | Self::Sealed { .. }
            | Self::Closed => Blame::Operator,
        }
    }
}
