//! Retention: for how long tables keep rows.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use model::{Date, TableName, TimeRange, Timestamp};
use store::Store;
use store::table::{DAY_US, oldest_kept};

use crate::bulk::{BulkError, is_there};
use crate::table_scan::each_batch;

/// The days (UTC) that would expire at `now` if the table kept rows for `ttl`, oldest first, with the number of their rows.
/// Changes nothing.
///
/// # Errors
/// The table does not exist and `may_create` is false, or a file cannot be read.
pub fn expiring(
    store: &dyn Store,
    table: &TableName,
    ttl: Option<Duration>,
    may_create: bool,
    now: Timestamp,
) -> Result<Vec<(Date, u64)>, BulkError> {
    let Some(snapshot) = store.snapshot(table)? else {
        return if may_create || is_there(store, table)? {
            Ok(Vec::new())
        } else {
            Err(BulkError::no_table(store, table))
        };
    };
    let Some(ttl) = ttl else { return Ok(Vec::new()) };
    let today = oldest_kept(now, ttl).micros().div_euclid(DAY_US).saturating_mul(DAY_US);
    let range = TimeRange::new(Timestamp::MIN, Timestamp::from_micros(today));
    let mut days = BTreeMap::new();
    each_batch(&*snapshot, vec![snapshot.columns().ts_index()], None, range, |batch| {
        for ts in batch.column(0).as_primitive::<TimestampMicrosecondType>().values() {
            *days.entry(ts.div_euclid(DAY_US)).or_insert(0) += 1;
        }
    })?;
    let date = |day: i64| Timestamp::from_micros(day.saturating_mul(DAY_US)).date();
    Ok(days.into_iter().map(|(day, rows)| (date(day), rows)).collect())
}

/// Sets for how long the table keeps rows; `None` forever. Waits for the disk. Without `may_create` a misspelt name does not become a table.
pub fn set_ttl(
    store: &dyn Store,
    table: &TableName,
    ttl: Option<Duration>,
    may_create: bool,
) -> Result<(), BulkError> {
    if !may_create && !is_there(store, table)? {
        return Err(BulkError::no_table(store, table));
    }
    Ok(store.set_ttl(table, ttl)?)
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, ValueRef};
    use store::conformance::table;
    use store::{Durability, MemoryStore, Writer};

    use super::*;

    #[test]
    fn the_days_to_drop_are_listed_with_their_rows() {
        let store = MemoryStore::new();
        let series = store.series(&SeriesKey::new("t", &[]).unwrap()).unwrap();
        let mut batch = Batch::new();
        // Two rows on each of ten days from 2024-05-01 on.
        for hour in (0..240).step_by(12) {
            let mut builder = batch.builder();
            builder.field("n", ValueRef::I64(hour));
            builder.row(series, Timestamp::from_micros(1_714_521_600_000_000 + hour * 3_600_000_000));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let now = Timestamp::from_micros(1_714_521_600_000_000 + 10 * DAY_US);
        let days = |ttl_h: u64| {
            let ttl = Some(Duration::from_secs(ttl_h * 3_600));
            let days = expiring(&store, &table("t"), ttl, false, now).unwrap();
            days.iter().map(|(day, rows)| format!("{day} {rows}")).collect::<Vec<_>>()
        };
        assert_eq!(days(8 * 24), ["2024-05-01 2", "2024-05-02 2"]);
        assert_eq!(days(8 * 24 + 1), ["2024-05-01 2"], "a day goes when all of it is older");
        assert_eq!(days(10 * 24), Vec::<String>::new());
        assert_eq!(days(1).len(), 9);
        assert_eq!(expiring(&store, &table("t"), None, false, now).unwrap(), []);
        assert!(matches!(expiring(&store, &table("u"), None, false, now), Err(BulkError::NoTable { .. })));
        assert_eq!(expiring(&store, &table("u"), None, true, now).unwrap(), []);
    }
}
