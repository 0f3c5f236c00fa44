//! The errors of the hub's operations on data.

use kv::KvError;
use store::StoreError;

use crate::attributes::AttributeError;
use crate::bulk::BulkError;
use crate::caller::Forbidden;
use crate::history::HistoryError;
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
    /// The store of keys failed.
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
    /// An import, an export or a change of a table failed.
    #[error(transparent)]
    Bulk(#[from] BulkError),
}
