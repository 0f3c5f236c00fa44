//! Estimates how many rows a scan returns, and how many partitions it has, without reading.

use datafusion::common::Result;
use store::{ReadOrder, TableRead, TableSnapshot};

/// Estimated rows from which several threads share a scan. To start a second thread costs about as much as to read this many rows.
const PARALLEL_ROWS_MIN: u64 = 64 * 1024;
/// Estimated rows of a series when its last row is read.
const LAST_ROWS_PER_SERIES: u64 = 4;

/// How many rows a scan returns.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowEstimate {
    /// The scan returns no rows.
    None,
    /// About this many, at least one.
    About(u64),
}

/// Estimates the rows of a read.
pub(super) fn row_estimate(
    snapshot: &dyn TableSnapshot,
    read: &TableRead,
    limit: Option<usize>,
) -> Result<RowEstimate> {
    let rows = snapshot.rows_within(read.range);
    if rows == 0 || read.series.as_ref().is_some_and(|series| series.is_empty()) {
        return Ok(RowEstimate::None);
    }
    let mut rows = (rows as f64 * share_of_series(snapshot, read)?).ceil() as u64;
    if let ReadOrder::LastRow(_) = read.order {
        rows = rows.min(last_rows(series_count(snapshot, read)?));
    }
    Ok(RowEstimate::About(limit.map_or(rows, |limit| rows.min(limit as u64)).max(1)))
}

/// Estimates the rows of a read of the last row of each of the given number of series.
pub(super) fn last_rows(series: u64) -> u64 {
    series.saturating_mul(LAST_ROWS_PER_SERIES)
}

/// Returns the share of the table's series that is read.
pub(super) fn share_of_series(snapshot: &dyn TableSnapshot, read: &TableRead) -> Result<f64> {
    let Some(series) = &read.series else { return Ok(1.0) };
    Ok(series.len() as f64 / all_series(snapshot)?.max(1) as f64)
}

/// Returns how many series may have rows.
pub(super) fn series_count(snapshot: &dyn TableSnapshot, read: &TableRead) -> Result<u64> {
    match &read.series {
        Some(series) => Ok(series.len()),
        None => all_series(snapshot),
    }
}

fn all_series(snapshot: &dyn TableSnapshot) -> Result<u64> {
    Ok(snapshot.select(&[]).map_err(crate::error::external)?.len())
}

/// Returns how many partitions a scan has.
pub(super) fn partitions(read: &TableRead, rows: RowEstimate) -> usize {
    match (read.order, rows) {
        (ReadOrder::Any | ReadOrder::LastRow(_), RowEstimate::About(rows)) if rows >= PARALLEL_ROWS_MIN => {
            read.readers_max.max(1)
        }
        _ => 1,
    }
}
