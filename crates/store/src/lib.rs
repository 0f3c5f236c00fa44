//! The storage contract: the promises that every backend keeps.
//!
//! The contract knows series, rows and durability. It knows no SQL, no protocol and no backend. [`MemoryStore`] is the
//! reference backend and short enough to be read as the specification. The tests of every backend run the checks of
//! [`conformance`].

pub mod backup;
pub mod check;
pub mod conformance;
pub mod deletion;
pub mod durability;
pub mod error;
pub mod files;
pub mod memory;
mod numbers;
pub mod read;
pub mod table;

pub use check::{ByteProgress, CheckReport, Finding, Severity};
pub use deletion::Deletion;
pub use durability::{Durability, Progress, ProgressWatcher, Sequence};
pub use error::{StoreError, is_transient};
pub use files::{StoreFile, StoreFiles};
pub use memory::MemoryStore;
pub use model::Blame;
pub use read::{LatestValue, Order, Scan, ScannedBlock, ScannedRow, ValueColumn};
pub use table::{
    BatchReader, Column, FieldColumn, MissingColumn, ReadOrder, SeriesSet, SeriesVisitor, TableColumns,
    TableRead, TableSnapshot, TableStatus, TagColumn, TagMatcher, TagPredicate,
};

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp, limits};

/// A backend that keeps rows. All calls are safe from any thread.
///
/// The identity of a row is (series, ts). A second write of a row updates it field by field: of two writes of one key
/// the one with the later sequence wins, whatever the types of the two values, and the other keys stay. So a repeated
/// append is harmless.
pub trait Store: Send + Sync + 'static {
    /// The series with this key. The store creates the series if it is new.
    ///
    /// A new series needs no sync of its own: it becomes durable no later than the first row that is appended to it.
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError>;

    /// The series with this key; `None` if no caller has created it.
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId>;

    /// Takes a batch and returns the sequence at which it ends. Never waits for a disk.
    ///
    /// The rows can be read at once. `durability` holds for them when [`Progress::reached`] for that class is at or past
    /// the returned sequence; the caller must not acknowledge them earlier. After an `Err` the store has taken no row of
    /// the batch. [`StoreError::Busy`] is backpressure: the store takes the same batch later, and calls the watchers
    /// when it has room.
    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError>;

    /// Like [`append`](Self::append), but defines no column. If the batch needs a column that its table does not have,
    /// the store takes no row of it and returns `None`. If no column is missing, this costs no more than `append`.
    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError>;

    /// The columns that a batch needs and its tables do not have, each once, in the order of the fields that need them.
    ///
    /// # Errors
    /// [`StoreError::UnknownSeries`], and [`StoreError::Name`] when a key breaks the rules for names.
    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError>;

    /// The progress of the store.
    fn progress(&self) -> Progress;

    /// Calls `watcher` after each change of [`Progress`] and whenever a busy store has room again.
    ///
    /// A thread of the store makes the call. The watcher must not block, and must not call the write side of the store.
    fn watch(&self, watcher: Arc<dyn ProgressWatcher>);

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

    /// Sets how long the store keeps the rows of a table; forever when `ttl` is `None`. The setting is durable when the
    /// call returns. The store creates the table if it is new.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError>;

    /// How long the store keeps the rows of a table: the last setting of [`set_ttl`](Self::set_ttl), otherwise the
    /// default of the store. A table that does not exist yet has the default.
    fn ttl(&self, table: &TableName) -> Option<Duration>;

    /// Drops a key of a table with its values of all types and of all series. The drop is durable when the call returns.
    /// Returns `false` when the table has no such key.
    ///
    /// A snapshot that a reader holds keeps the values; a later one does not have them. A row that had values of dropped
    /// keys only stays a row. A later value under the same name starts a new column with this name and its own type.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), and [`StoreError::OverLimit`] beyond
    /// [`DROPPED_KEYS_PER_TABLE_MAX`](model::limits::DROPPED_KEYS_PER_TABLE_MAX). After an error the key may be dropped or not.
    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError>;

    /// Deletes rows, or the values of some keys, that the store has now. Returns the sequence of the deletion: it is as
    /// durable as `durability` says when [`Progress::reached`] for that class is at or past it. Never waits for a disk.
    ///
    /// Reads do not find the rows from now on; a snapshot that a reader holds keeps them. A row that is appended later stays,
    /// whatever its time. A row whose values were all deleted by keys stays a row without values, as after
    /// [`drop_key`](Self::drop_key). A deletion that is not durable yet is lost as a whole or not at all. The disk has the
    /// bytes of deleted rows until the store rewrites the file that has them. A deletion of rows that do not exist costs
    /// nothing, and keys that the table does not have change nothing.
    ///
    /// # Errors
    /// [`StoreError::UnknownSeries`], [`StoreError::OverLimit`] when the series have several tables or the request is larger
    /// than the log takes at once, and those of [`append`](Self::append). [`StoreError::Busy`] too when
    /// [`DELETIONS_PER_TABLE_MAX`](model::limits::DELETIONS_PER_TABLE_MAX) deletions of the table still hide rows in files.
    fn delete_rows(&self, deletion: &Deletion, durability: Durability) -> Result<Sequence, StoreError>;

    /// Deletes series of one table, with all their rows. Returns the sequence of the deletion, as
    /// [`delete_rows`](Self::delete_rows) does.
    ///
    /// No search finds the series from now on, and reads and writes of them get [`StoreError::UnknownSeries`]; a snapshot that a
    /// reader holds keeps their rows. The same key makes a new series, with a new id and without rows. The table stays, also
    /// without series. A deletion that is not durable yet is lost as a whole or not at all.
    ///
    /// # Errors
    /// Those of [`delete_rows`](Self::delete_rows).
    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError>;

    /// Drops a table with its series, rows, columns and its time to live. The drop is durable when the call returns. Returns
    /// `false` when there is no such table.
    ///
    /// The series end as with [`delete_series`](Self::delete_series). The same name makes a new table, which inherits nothing.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), and [`StoreError::OverLimit`] beyond
    /// [`DROPPED_TABLES_MAX`](model::limits::DROPPED_TABLES_MAX). After an error the table may be dropped or not.
    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError>;

    /// Drops the rows that are older than their table keeps them, and returns their number.
    ///
    /// The store drops whole days (UTC): a day is dropped when all of it is older than [`table::oldest_kept`]. So the
    /// store never drops a younger row. An older row may stay readable
    /// - for up to a day longer,
    /// - while it shares a file with younger rows,
    /// - until the next call, if this call found it in memory,
    /// - while `now` is further ahead than time can have passed: a wall clock may be wrong, and a dropped row is gone.
    ///
    /// The call costs nothing for rows that stay.
    ///
    /// # Errors
    /// [`StoreError::Closed`], [`StoreError::Sealed`], and [`StoreError::Io`] while the disk has no room for a few bytes;
    /// a later call will succeed.
    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// Sizes and health. The call is cheap enough for every second.
    fn status(&self) -> StoreStatus;

    /// Reads all files, and compares them with their checksums and with each other, while the store serves.
    ///
    /// # Errors
    /// When the check itself fails, or when this kind of store has no files. Damage is no error; it is in the report.
    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        let _ = progress;
        Err(StoreError::Unsupported { what: "check" })
    }

    /// The files of the store at this moment, with every row that was acknowledged before the call. The store keeps the
    /// files while the answer lives, so the caller should drop the answer as soon as it has read them.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), because the store first writes the rows in memory into files, and
    /// [`StoreError::Unsupported`] when this kind of store has no files.
    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        Err(StoreError::Unsupported { what: "back up" })
    }

    /// Makes all appended rows durable and stops the threads of the store. The store refuses later appends.
    fn close(&self) -> Result<(), StoreError>;
}

/// The answer of [`Store::status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Why the store refuses writes; `None` when it takes them. Reads go on.
    pub sealed: Option<String>,
    /// Why writes have to wait at present (a full disk, merges that have fallen behind); `None` when they do not.
    pub busy: Option<String>,
    /// Why flushes wait: merges have fallen behind. Writes go on until memory is full. `None` when flushes do not wait.
    pub flush_held: Option<String>,
    /// Number of tables.
    pub tables: u64,
    /// Number of series.
    pub series: u64,
    /// Number of rows that were appended since the store was opened.
    pub rows_appended: u64,
    /// Log bytes that were appended and are not durable yet.
    pub log_pending_bytes: u64,
    /// Log bytes that a recovery would read.
    pub log_bytes: u64,
    /// Bytes of rows in memory that no part holds yet.
    pub memtable_bytes: u64,
    /// Number of parts.
    pub parts: u64,
    /// Bytes of all parts on disk.
    pub part_bytes: u64,
    /// Number of deletions that still hide rows in memory or files.
    pub deletions: u64,
    /// The largest number of parts of one table. Compaction keeps it down.
    pub parts_per_table_max: u64,
    /// The largest number of parts of one table that a read of one moment opens. Parts that are too large for a merge
    /// count as well.
    pub parts_overlap_max: u64,
}

/// Refuses a batch that exceeds the limits of rows or of text.
pub fn check_batch_size(batch: &Batch) -> Result<(), StoreError> {
    let check = |what, actual: usize, limit: usize| match actual > limit {
        true => Err(StoreError::OverLimit { what, actual: actual as u64, limit: limit as u64 }),
        false => Ok(()),
    };
    check("rows of a batch", batch.len(), limits::BATCH_ROWS_MAX)?;
    check("text bytes of a batch", batch.text_bytes(), limits::BATCH_TEXT_BYTES_MAX)
}
