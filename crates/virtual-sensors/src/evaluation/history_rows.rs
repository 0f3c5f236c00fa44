//! Retention by count: the output of a sensor keeps its newest rows.
//!
//! Rows are deleted at a checkpoint, and only when the table has grown by a share of the count since the last deletion: a deletion
//! costs a record of the store.

use std::ops::ControlFlow;

use hub::bulk::{BulkError, DeleteRequest, Deleted, delete_rows};
use model::series::DEVICE_TAG;
use model::{TimeRange, Timestamp};
use sensors::virtual_sensors::plan::Extent;
use store::{Order, Scan, Store, StoreError, TagMatcher, TagPredicate};

use super::reread::keys_of;
use super::running::Running;
use crate::host::Host;
use crate::limits::HISTORY_ROWS_OVER_MIN;

/// Deletes the rows of the output that are older than the newest ones that `history-size` counts, if there are enough of them.
pub(super) fn trim(host: &Host, running: &mut Running) {
    let Some(Extent::Count(count)) = running.plan.history else { return };
    let appended = running.output.appended;
    let over = (count / 10).max(HISTORY_ROWS_OVER_MIN) as u64;
    if running.trimmed.is_some_and(|at| appended - at < over) {
        return;
    }
    running.trimmed = Some(appended);
    if let Err(error) = delete_older(host, running, count) {
        tracing::warn!(sensor = running.name(), %error, "rows beyond history-size are not deleted yet");
    }
}

fn delete_older(host: &Host, running: &Running, count: usize) -> Result<(), BulkError> {
    let device = &running.destination.device;
    let oldest = oldest_of_newest(&*host.store, running.destination.series, count)?;
    let Some(oldest) = oldest else { return Ok(()) };
    let range = TimeRange::new(Timestamp::MIN, oldest);
    let predicate = TagPredicate::Is(device.name.clone());
    let request = DeleteRequest {
        matchers: vec![TagMatcher { tag: DEVICE_TAG.to_owned(), predicate }],
        what: Deleted::Rows { keys: None, range },
    };
    delete_rows(&*host.store, &device.profile.table, &request, false).map(drop)
}

/// The time of the oldest of the newest rows of a series; `None` if it does not have more rows than these.
fn oldest_of_newest(
    store: &dyn Store,
    series: model::SeriesId,
    count: usize,
) -> Result<Option<Timestamp>, StoreError> {
    let (mut rows, mut oldest) = (0, None);
    let limit = count.max(1).saturating_add(1);
    let scan = Scan {
        series,
        keys: keys_of(store, series)?,
        range: TimeRange::ALL,
        order: Order::Descending,
        limit,
    };
    let read = store.scan(&scan, &mut |row| {
        rows += 1;
        if rows < limit {
            oldest = Some(row.ts);
        }
        ControlFlow::Continue(())
    });
    match read {
        Err(StoreError::UnknownSeries(_)) => Ok(None),
        read => read.map(|()| oldest.filter(|_| rows == limit)),
    }
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, ValueRef};
    use store::{Durability, MemoryStore};

    use super::*;

    #[test]
    fn rows_beyond_the_count_are_found_by_the_oldest_row_that_stays() {
        let memory = MemoryStore::new();
        let store: &dyn Store = &memory;
        let series = store.series(&SeriesKey::new("t", &[("device", "a")]).unwrap()).unwrap();
        let mut batch = Batch::new();
        for ts in 0..10 {
            let mut builder = batch.builder();
            builder.field("x", ValueRef::I64(ts));
            builder.row(series, Timestamp::from_micros(ts));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let oldest = |count| oldest_of_newest(store, series, count).unwrap().map(Timestamp::micros);
        assert_eq!((oldest(3), oldest(9), oldest(10), oldest(11)), (Some(7), Some(1), None, None));
        assert_eq!(oldest(0), Some(9), "the newest row stays");
    }
}
