//! The error of work that a worker does for itself: it failed, or the store closes.

use store::StoreError;

/// Why a worker ended a task early.
pub(crate) enum Abort {
    Failed(StoreError),
    /// The store closes; the next open does the work again.
    Stopped,
}

impl From<StoreError> for Abort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}
