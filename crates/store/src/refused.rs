//! The rows of a batch that a store refuses.

use crate::error::StoreError;

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
