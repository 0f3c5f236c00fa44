//! Requests to delete rows.

use model::{SeriesId, TimeRange};

use crate::{SeriesSet, StoreError};

/// The rows, or the values of some keys, that a caller wants to delete.
#[derive(Debug, Clone, PartialEq)]
pub struct Deletion {
    /// The series, all of one table. [`TableSnapshot::select`](crate::TableSnapshot::select) gives those that match tags.
    pub series: SeriesSet,
    /// The times of the rows, half-open. As in all ranges, the very last microsecond is never inside.
    pub range: TimeRange,
    /// The keys whose values the store deletes, by the names under which they were reported; whole rows when `None`.
    pub keys: Option<Vec<String>>,
}

impl Deletion {
    /// The rows of one series in a range of time.
    ///
    /// # Errors
    /// [`StoreError::UnknownSeries`] when no store gives out this id.
    pub fn of_series(series: SeriesId, range: TimeRange) -> Result<Self, StoreError> {
        let id = u32::try_from(series.0).map_err(|_| StoreError::UnknownSeries(series))?;
        Ok(Self { series: SeriesSet::from_iter([id]), range, keys: None })
    }
}

/// The error of a deletion whose series have several tables.
pub fn several_tables() -> StoreError {
    StoreError::OverLimit { what: "tables of a deletion", actual: 2, limit: 1 }
}
