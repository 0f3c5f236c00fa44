//! Deletes rows, values, series and tables.
//!
//! Each function waits until the deletion is on the disk: call it on a thread that may block.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, RecordBatch};
use model::{TableName, TimeRange};
use store::{
    Column, Deletion, Durability, SeriesSet, Store, TableColumns, TableSnapshot, TagMatcher, TagPredicate,
    Ticket,
};

use super::BulkError;
use super::export::check_tag;
use super::table_exists::is_there;
use crate::blocking_append::{retry, wait_durable};
use crate::registry::AUDIT_TABLE;
use crate::table_scan::each_batch;

/// How long a deletion waits for a busy store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The data to delete from a table.
#[derive(Debug, Clone)]
pub struct DeleteRequest {
    /// Conditions on tags; the deletion concerns the series that satisfy all of them.
    pub matchers: Vec<TagMatcher>,
    /// What of these series.
    pub what: Deleted,
}

/// What a deletion takes from its series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// The rows in the time range; with `keys` only the values of these keys, and the rows stay.
    Rows {
        /// The keys; whole rows when `None`.
        keys: Option<Vec<String>>,
        /// The times of the rows, half-open.
        range: TimeRange,
    },
    /// The series with all their rows. Lists of series do not have them any more.
    Series,
}

/// Deletes from a table. Returns the number of the rows that lose values, counted just before; with `dry_run` only counts them.
///
/// Rows that arrive during the call may stay.
///
/// # Errors
/// The table, a tag or a key does not exist; the table is the audit table; or the store fails.
pub fn delete_rows(
    store: &dyn Store,
    table: &TableName,
    request: &DeleteRequest,
    dry_run: bool,
) -> Result<u64, BulkError> {
    check_table(table)?;
    let snapshot = store.snapshot(table)?;
    let snapshot = snapshot.ok_or_else(|| BulkError::no_table(store, table))?;
    for matcher in &request.matchers {
        check_tag(matcher, table.name(), &snapshot.columns().tags)?;
    }
    let series = snapshot.select(&request.matchers)?;
    delete_of_series(store, table, snapshot, series, &request.what, dry_run)
}

/// Deletes from series of a table, which a snapshot has. Returns what [`delete_rows`] returns.
///
/// # Errors
/// A key does not exist, or the store fails.
pub(crate) fn delete_of_series(
    store: &dyn Store,
    table: &TableName,
    snapshot: Arc<dyn TableSnapshot>,
    series: SeriesSet,
    what: &Deleted,
    dry_run: bool,
) -> Result<u64, BulkError> {
    let (keys, range) = match what {
        Deleted::Rows { keys, range } => (keys.as_deref(), *range),
        Deleted::Series => (None, TimeRange::ALL),
    };
    let rows = count(&*snapshot, table, &series, keys, range)?;
    // A snapshot that is alive keeps files from being removed.
    drop(snapshot);
    if dry_run || series.is_empty() {
        return Ok(rows);
    }
    let began = Instant::now();
    let sequence = retry(began, BUSY_TIMEOUT, || match what {
        Deleted::Rows { keys, range } => {
            let deletion = Deletion { series: series.clone(), range: *range, keys: keys.clone() };
            store.delete_rows(&deletion, Durability::Fsync)
        }
        Deleted::Series => store.delete_series(&series, Durability::Fsync),
    })?;
    wait_durable(store, Ticket::of_deletion(sequence))?;
    Ok(rows)
}

/// The conditions that series have these tags. They may have others.
pub fn matchers(tags: impl IntoIterator<Item = (String, String)>) -> Vec<TagMatcher> {
    tags.into_iter().map(|(tag, value)| TagMatcher { tag, predicate: TagPredicate::Is(value) }).collect()
}

/// The conditions that series of a table have these tags and no others.
///
/// # Errors
/// The table does not exist, or the store fails.
pub fn matchers_of_only(
    store: &dyn Store,
    table: &TableName,
    tags: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<TagMatcher>, BulkError> {
    let snapshot = store.snapshot(table)?;
    let snapshot = snapshot.ok_or_else(|| BulkError::no_table(store, table))?;
    let mut all = matchers(tags);
    for tag in &snapshot.columns().tags {
        if all.iter().all(|matcher| *matcher.tag != *tag.tag) {
            all.push(TagMatcher { tag: tag.tag.to_string(), predicate: TagPredicate::Absent });
        }
    }
    Ok(all)
}

/// Drops a table with its series, rows, columns and its time to live. With `dry_run` only checks that it may.
///
/// # Errors
/// The table does not exist; it is the audit table; or the store fails.
pub fn drop_table(store: &dyn Store, table: &TableName, dry_run: bool) -> Result<(), BulkError> {
    check_table(table)?;
    if !is_there(store, table)? {
        return Err(BulkError::no_table(store, table));
    }
    // Another caller can drop the table first.
    if !dry_run && !retry(Instant::now(), BUSY_TIMEOUT, || store.drop_table(table))? {
        return Err(BulkError::no_table(store, table));
    }
    Ok(())
}

/// Refuses the audit table: nobody may remove the traces of an act.
pub(crate) fn check_table(table: &TableName) -> Result<(), BulkError> {
    if table.name() != AUDIT_TABLE {
        return Ok(());
    }
    let reason = format!(
        "nobody can delete from the table {AUDIT_TABLE}; its rows expire with a time to live (`tacho table set`)"
    );
    Err(BulkError::Asked(reason))
}

/// The rows of the series in the range; with `keys` those that have a value of one of the keys.
fn count(
    snapshot: &dyn TableSnapshot,
    table: &TableName,
    series: &SeriesSet,
    keys: Option<&[String]>,
    range: TimeRange,
) -> Result<u64, BulkError> {
    let columns = match keys {
        None => vec![snapshot.columns().ts_index()],
        Some(keys) => columns_of(snapshot.columns(), table, keys)?,
    };
    let mut rows = 0;
    each_batch(snapshot, columns, Some(series.clone()), range, |batch| rows += rows_with_value(batch))?;
    Ok(rows)
}

fn rows_with_value(batch: &RecordBatch) -> u64 {
    let has_value = |row: &usize| batch.columns().iter().any(|column| column.is_valid(*row));
    (0..batch.num_rows()).filter(has_value).count() as u64
}

/// The columns of all types of the keys.
fn columns_of(columns: &TableColumns, table: &TableName, keys: &[String]) -> Result<Vec<usize>, BulkError> {
    let width = columns.schema().fields().len();
    let mut found = Vec::new();
    for key in keys {
        let is_of_key = |index: &usize| matches!(columns.column(*index), Some(Column::Field(field)) if *field.key == **key);
        let before = found.len();
        found.extend((0..width).filter(is_of_key));
        if found.len() == before {
            return Err(BulkError::NoKey {
                table: table.name().to_owned(),
                key: key.clone(),
                hint: "`tacho table columns` lists the keys".to_owned(),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::conformance::table;
    use store::{MemoryStore, Reader, Writer};

    use super::super::parse_matcher;
    use super::*;

    fn filled() -> MemoryStore {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for (device, key, ts) in [("a", "n", 1), ("a", "n", 2), ("a", "m", 3), ("b", "n", 1)] {
            let series = store.series(&SeriesKey::device("t", device).unwrap()).unwrap();
            let mut builder = batch.builder();
            builder.field(key, ValueRef::I64(ts));
            builder.row(series, Timestamp::from_micros(ts));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        store
    }

    fn rows(condition: &str, keys: &[&str], (from, to): (i64, i64)) -> DeleteRequest {
        let keys = (!keys.is_empty()).then(|| keys.iter().map(|key| (*key).to_owned()).collect());
        let range = TimeRange::new(Timestamp::from_micros(from), Timestamp::from_micros(to));
        DeleteRequest {
            matchers: vec![parse_matcher(condition).unwrap()],
            what: Deleted::Rows { keys, range },
        }
    }

    #[test]
    fn a_dry_run_counts_what_the_deletion_takes() {
        let store = filled();
        let t = table("t");
        for (request, expected) in [
            (rows("device=a", &["n"], (2, 4)), 1),
            (rows("device=a", &[], (0, 3)), 2),
            (rows("device=c", &[], (0, 9)), 0),
            (DeleteRequest { matchers: Vec::new(), what: Deleted::Series }, 2),
        ] {
            assert_eq!(delete_rows(&store, &t, &request, true).unwrap(), expected, "{request:?}");
            assert_eq!(delete_rows(&store, &t, &request, false).unwrap(), expected, "{request:?}");
            if matches!(request.what, Deleted::Rows { .. }) {
                assert_eq!(delete_rows(&store, &t, &request, true).unwrap(), 0, "{request:?}");
            }
        }
        assert_eq!(store.find_series(&SeriesKey::device("t", "a").unwrap()), None);
        drop_table(&store, &t, true).unwrap();
        drop_table(&store, &t, false).unwrap();
        assert!(matches!(drop_table(&store, &t, false), Err(BulkError::NoTable { .. })));
    }

    #[test]
    fn wrong_requests_and_the_audit_table_are_refused() {
        let store = filled();
        let refused = |name: &str, request: &DeleteRequest| {
            delete_rows(&store, &table(name), request, false).unwrap_err().to_string()
        };
        assert!(refused("u", &rows("device=a", &[], (0, 9))).contains("there is no table \"u\""));
        assert!(refused("t", &rows("site=a", &[], (0, 9))).contains("has no tag \"site\""));
        assert!(refused("t", &rows("device=a", &["x"], (0, 9))).contains("has no key \"x\""));
        assert!(refused("audit", &rows("device=a", &[], (0, 9))).contains("expire"));
        assert!(drop_table(&store, &table("audit"), false).unwrap_err().to_string().contains("expire"));
    }
}
