//! The data that a query reads: tables, their series and their rows.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use model::TimeRange;
use store::{ReadOrder, TableColumns, TagMatcher};

use crate::SourceError;

/// The tables that a query may read.
pub trait Source {
    /// The names of the tables, sorted.
    ///
    /// # Errors
    /// The store does not answer.
    fn tables(&self) -> Result<Vec<String>, SourceError>;

    /// A table as it is now; `None` if the query may not see a table of this name.
    ///
    /// # Errors
    /// The store does not answer.
    fn open(&self, table: &str) -> Result<Option<Box<dyn Table + '_>>, SourceError>;

    /// Returns whether the query may continue. The methods of [`Table`] ask it between batches and now and then between series. A query
    /// that computes for long without reading asks it too, about once in a thousand steps.
    ///
    /// # Errors
    /// [`SourceError::Stopped`] when the query must end: its time is over, it holds too much memory, or its client is gone.
    fn check(&self) -> Result<(), SourceError>;
}

/// Tags of a series: pairs of name and value.
pub type TagPairs<'n, 'v> = [(&'n str, &'v str)];

/// A table at one moment.
pub trait Table {
    /// The columns. They do not change while the query holds the table.
    fn columns(&self) -> &TableColumns;

    /// A range that contains all rows; `None` when there are no rows.
    fn time_range(&self) -> Option<TimeRange>;

    /// Visits the tags of each series that satisfies all matchers, each series once, until the visitor returns `Break`. The tags
    /// are pairs of name and value, sorted by name. A series may have no rows.
    ///
    /// # Errors
    /// The store cannot read, or the query was stopped.
    fn series(
        &self,
        matchers: &[TagMatcher],
        visit: &mut dyn FnMut(&TagPairs<'_, '_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;

    /// Visits the distinct values that the series which satisfy all matchers have for a tag, in any order, until the visitor
    /// returns `Break`. A value may come from a series without rows.
    ///
    /// # Errors
    /// The store cannot read, or the query was stopped.
    fn tag_values(
        &self,
        tag: &str,
        matchers: &[TagMatcher],
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;

    /// The number of the series that satisfy all matchers. It costs no visit.
    ///
    /// # Errors
    /// The store cannot read, or the query was stopped.
    fn series_count(&self, matchers: &[TagMatcher]) -> Result<u64, SourceError>;

    /// Visits rows in batches until the visitor returns `Break`.
    ///
    /// The columns of a batch are all tags of the table, in runs ([`store::table::TAG_RUNS_TYPE`]), then `ts`, then the requested
    /// fields. [`each_series`](crate::each_series) splits a batch by series.
    ///
    /// # Errors
    /// The store cannot read, or the query was stopped.
    fn read(
        &self,
        read: &SeriesRead,
        visit: &mut dyn FnMut(&RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;
}

/// Rows to read.
#[derive(Debug, Clone)]
pub struct SeriesRead {
    /// The series: those that satisfy all matchers.
    pub matchers: Vec<TagMatcher>,
    /// The time, half-open.
    pub range: TimeRange,
    /// The fields: indices into [`TableColumns::fields`].
    pub fields: Vec<usize>,
    /// The order of the rows.
    pub order: ReadOrder,
}
