//! What reads rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{SeriesId, SeriesKey, TableName, Timestamp};

use crate::error::StoreError;
use crate::read::{LatestValue, Scan, ScannedBlock, ScannedRow};
use crate::table::{TableSnapshot, TableStatus};

/// Finds series and reads their rows. Reading creates nothing.
pub trait Reader: Send + Sync + 'static {
    /// The series with this key; `None` if no caller has created it.
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId>;

    /// The newest value (by ts, then by sequence) of each key of a series; of all keys when `keys` is `None`.
    /// The answer is sorted by key and leaves out keys that were never written.
    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError>;

    /// Visits the rows of one series in the requested order, at most one per ts, in blocks, until the visitor returns
    /// `Break`.
    ///
    /// The blocks contain every row that has a value of a requested key; they may contain other rows. The limit is only a
    /// hint how many rows the caller is likely to want: blocks continue beyond it. Memory use does not grow with the
    /// number of rows.
    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Visits the rows of one series one by one, until the limit or until the visitor returns `Break`. A row without any
    /// of the requested keys is not visited and does not count.
    fn scan(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut left = scan.limit;
        self.scan_blocks(scan, &mut |block| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            let mut values = vec![None; block.columns.len()];
            for (row, ts) in block.times.iter().enumerate() {
                let mut any = false;
                for (value, columns) in values.iter_mut().zip(block.columns) {
                    *value = columns.iter().find_map(|column| column.get(row));
                    any |= value.is_some();
                }
                if any {
                    visit(ScannedRow { ts: Timestamp::from_micros(*ts), values: &values })?;
                    left -= 1;
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// The status of every table of every namespace, sorted by [`TableName`]. The store reads no file for it.
    ///
    /// # Errors
    /// When the backend is on another machine and does not answer.
    fn tables(&self) -> Result<Vec<TableStatus>, StoreError>;

    /// A table as it is now; `None` if no series of it was ever created.
    ///
    /// # Errors
    /// When the backend is on another machine and does not answer. A file that cannot be read is an error of the readers.
    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError>;
}
