//! The errors of the hub's operations on data.

use kv::KvError;
use store::{Blame, StoreError};

use crate::attributes::AttributeError;
use crate::bulk::BulkError;
use crate::caller::Forbidden;
use crate::history::HistoryError;
use crate::ota::OtaError;
use crate::registry::RegistryError;

/// An operation that the hub refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key-value store failed.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// Attributes were refused, or cannot be read or written.
    #[error(transparent)]
    Attributes(#[from] AttributeError),
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A package of firmware or software was refused, or cannot be read or written.
    #[error(transparent)]
    Ota(#[from] OtaError),
    /// An import, an export or a change of a table failed.
    #[error(transparent)]
    Bulk(#[from] BulkError),
}

impl Error {
    /// Who must act.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Forbidden(_) => Blame::Caller,
            Self::Store(error)
            | Self::History(HistoryError::Store(error))
            | Self::Bulk(BulkError::Store(error)) => error.blame(),
            Self::Kv(error) => error.blame(),
            Self::Attributes(error) => error.blame(),
            Self::Registry(error) => error.blame(),
            Self::Ota(error) => error.blame(),
            Self::History(HistoryError::OverLimit { .. } | HistoryError::NoCalendar) => Blame::Caller,
            Self::Bulk(
                BulkError::NoTable { .. }
                | BulkError::NoKey { .. }
                | BulkError::Asked(_)
                | BulkError::Data(_),
            ) => Blame::Caller,
            Self::Bulk(BulkError::Write(_)) => Blame::Operator,
        }
    }
}
