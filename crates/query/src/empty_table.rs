//! Tables that exist for a user although no rows have been written to them.

use model::TimeRange;
use store::{
    BatchReader, SeriesSet, SeriesVisitor, StoreError, TableColumns, TableRead, TableSnapshot, TableStatus,
    TagMatcher,
};

/// A table without rows.
#[derive(Debug)]
pub(crate) struct EmptyTable(pub(crate) TableColumns);

impl TableSnapshot for EmptyTable {
    fn columns(&self) -> &TableColumns {
        &self.0
    }

    fn rows_max(&self) -> u64 {
        0
    }

    fn rows_within(&self, _range: TimeRange) -> u64 {
        0
    }

    fn time_range(&self) -> Option<TimeRange> {
        None
    }

    fn select(&self, _matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        Ok(SeriesSet::default())
    }

    fn each_series(
        &self,
        _series: Option<&SeriesSet>,
        _visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&self, _read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        Ok(Vec::new())
    }
}

/// The status of such a table in a list of tables.
pub(crate) fn status(columns: &TableColumns) -> TableStatus {
    TableStatus {
        table: columns.table.clone(),
        series: 0,
        rows: 0,
        points: None,
        bytes: 0,
        raw_bytes: None,
        time_range: None,
        ttl: None,
    }
}
