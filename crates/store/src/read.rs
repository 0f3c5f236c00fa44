//! What can be asked of a store.

use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef};

/// In which direction a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// A read of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Which series.
    pub series: SeriesId,
    /// Which keys, by the name they were reported under; values of all types are found under it.
    pub keys: Vec<String>,
    /// Which time, half-open.
    pub range: TimeRange,
    /// Which direction.
    pub order: Order,
    /// Most rows to visit.
    pub limit: usize,
}

/// One row of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScannedRow<'a> {
    /// The row's time.
    pub ts: Timestamp,
    /// A value or nothing for each of [`Scan::keys`], in their order.
    pub values: &'a [Option<ValueRef<'a>>],
}

/// The newest value of one key of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue {
    /// The name it was reported under.
    pub key: String,
    /// When.
    pub ts: Timestamp,
    /// What.
    pub value: Value,
}
