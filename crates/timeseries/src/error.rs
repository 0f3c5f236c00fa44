//! Why a table cannot be read.

use store::StoreError;

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store cannot read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query has reached a limit, such as its time, or its client is gone.
    #[error("{0}")]
    Stopped(String),
}
