//! The outcome of a request with rows.

use store::StoreError;

/// A request whose rows are durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Number of stored rows.
    pub rows: usize,
    /// Items of which the store refused values, in the order of the request. Their other values are stored.
    pub refused: Vec<RefusedItem>,
}

impl Accepted {
    /// Adds what came of a later piece of the request.
    pub fn extend(&mut self, later: Self) {
        self.rows += later.rows;
        self.refused.extend(later.refused);
    }
}

/// An item of which the store refused values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedItem {
    /// The number of the item.
    pub item: u32,
    /// The reason, in words for the sender.
    pub reason: String,
}

/// Why no row, or not every row, of a request is durable. The sender must send it again.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// A series of the request was deleted while the request was read. Collect the rows again: the series is created again.
    #[error("a series of the request was deleted meanwhile")]
    SeriesGone,
    /// The store was busy when the request needed a new series, and has made it now. Collect the rows again.
    #[error("the store was busy when the request needed a new series")]
    SeriesMade,
    /// The store does not accept rows.
    #[error(transparent)]
    Store(#[from] StoreError),
}
