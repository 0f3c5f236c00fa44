//! Reads some columns of a table to count something.

use arrow_array::RecordBatch;
use model::TimeRange;
use model::limits::EXPORT_BATCH_ROWS;
use store::{ReadOrder, SeriesSet, StoreError, TableRead, TableSnapshot};

/// Calls `visit` with the rows of the series in the range, in any order; of all series when `series` is `None`. It reads files.
pub(crate) fn each_batch(
    snapshot: &dyn TableSnapshot,
    columns: Vec<usize>,
    series: Option<SeriesSet>,
    range: TimeRange,
    mut visit: impl FnMut(&RecordBatch),
) -> Result<(), StoreError> {
    let readers = snapshot.read(&TableRead {
        columns,
        series,
        range,
        order: ReadOrder::Any,
        limit: None,
        batch_rows: EXPORT_BATCH_ROWS,
        readers_max: 1,
        tag_runs: false,
    })?;
    for mut reader in readers {
        while let Some(batch) = reader.next()? {
            visit(&batch);
        }
    }
    Ok(())
}
