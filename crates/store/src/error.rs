//! The errors of a store, and who must act on each.

use std::io;
use std::path::PathBuf;

use model::resource_errors::is_out_of_descriptors;
use model::{Blame, NameError, SeriesId, TableName, is_transient};

/// An error of a store. The text is for people; code uses [`StoreError::blame`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A name breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
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
    /// A table, or one of those who write to it, may have no more columns.
    #[error("{what} is {actual}, the limit is {limit}")]
    TooManyColumns {
        /// The table.
        table: TableName,
        /// The columns that are limited.
        what: &'static str,
        /// Their number with this one.
        actual: u64,
        /// The limit.
        limit: u64,
    },
    /// Rows of a batch cannot be stored. Without them the store takes the batch.
    #[error(transparent)]
    Rows(#[from] RefusedRows),
    /// A series id that this store never gave out.
    #[error("series {0:?} is unknown to this store")]
    UnknownSeries(SeriesId),
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
        /// The file.
        path: PathBuf,
        /// The error of the system. It is shared, because every later caller gets the error that sealed a store.
        #[source]
        source: std::sync::Arc<io::Error>,
    },
    /// The content of a file is wrong.
    #[error("corrupt {} at byte {offset}: {reason}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Another process uses the directory.
    #[error("{} is in use by {holder}; stop it or choose another directory", .path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// The process that uses it, such as "process 4711".
        holder: String,
    },
    /// An earlier write failed, so the store writes nothing more. Reads continue.
    #[error("read-only since an earlier write failed ({cause}); repair the cause and restart to recover")]
    Sealed {
        /// The first failure.
        cause: String,
    },
    /// The store took the write and could not keep it. Readers may find all of its rows, some or none.
    #[error("the store took the write and could not keep it ({cause}); send it again")]
    Lost {
        /// The reason of the store.
        cause: String,
    },
    /// This kind of store does not support the request.
    #[error("this store has no files to {what}")]
    Unsupported {
        /// The purpose of the request.
        what: &'static str,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// An I/O error with the operation and the file.
    pub fn io(verb: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { verb, path: path.into(), source: std::sync::Arc::new(source) }
    }

    /// Whether a sync failed. After a failed sync the state of the earlier writes is unknown, and no retry can find it
    /// out. A directory that could not be opened was not synced at all, so that is not a failed sync.
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::Io { verb: "sync", source, .. } if !is_out_of_descriptors(source))
    }

    /// Whether the machine lacked a resource that comes back by itself (space, quota, descriptors, memory) and the step
    /// left no partial effect. The caller may retry the same step.
    pub fn is_transient(&self) -> bool {
        !self.is_sync() && matches!(self, Self::Io { source, .. } if is_transient(source))
    }

    /// Whether a series is unknown: the one that was asked for, or that of a row.
    pub fn is_unknown_series(&self) -> bool {
        match self {
            Self::UnknownSeries(_) => true,
            Self::Rows(refused) => refused.rows().iter().any(RefusedRow::is_of_unknown_series),
            _ => false,
        }
    }

    /// Who must act. The match has no wildcard arm, so that a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Name(_)
            | Self::OverLimit { .. }
            | Self::TooManyColumns { .. }
            | Self::Rows(_)
            | Self::UnknownSeries(_)
            | Self::Unsupported { .. } => Blame::Caller,
            Self::Busy { .. } => Blame::Busy,
            Self::Io { .. } if self.is_transient() => Blame::Busy,
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::InUse { .. }
            | Self::Sealed { .. }
            | Self::Lost { .. }
            | Self::Closed => Blame::Operator,
        }
    }
}

/// A row that a store refuses.
#[derive(Debug, Clone)]
pub struct RefusedRow {
    /// The number of the row in the batch.
    pub row: usize,
    /// The numbers of the fields that are refused, ascending: the store takes the row without them. Empty if it refuses all of
    /// the row.
    pub fields: Vec<usize>,
    /// The reason.
    pub reason: StoreError,
}

/// All rows of a batch that a store refuses, for a reason that the row itself gives. The store has taken no row of the batch.
///
/// The text is the reason of the first one.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .rows[0].reason)]
pub struct RefusedRows {
    /// At least one, ascending.
    rows: Vec<RefusedRow>,
}

impl RefusedRows {
    /// These rows, which are ascending; `None` without any.
    pub fn new(rows: Vec<RefusedRow>) -> Option<Self> {
        debug_assert!(rows.is_sorted_by_key(|refused| refused.row));
        (!rows.is_empty()).then_some(Self { rows })
    }

    /// Refuses a batch if there are such rows.
    ///
    /// # Errors
    /// [`StoreError::Rows`].
    pub fn check(rows: Vec<RefusedRow>) -> Result<(), StoreError> {
        Self::new(rows).map_or(Ok(()), |refused| Err(StoreError::Rows(refused)))
    }

    /// The rows, ascending.
    pub fn rows(&self) -> &[RefusedRow] {
        &self.rows
    }
}

impl RefusedRow {
    /// A row of which the store takes nothing.
    pub fn whole(row: usize, reason: impl Into<StoreError>) -> Self {
        Self { row, fields: Vec::new(), reason: reason.into() }
    }

    /// Whether the store does not know the series of the row.
    pub fn is_of_unknown_series(&self) -> bool {
        matches!(self.reason, StoreError::UnknownSeries(_))
    }
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
