//! The storage contract: what every backend promises, whatever it is made of.
//!
//! It knows series, rows and durability. It knows no SQL, no protocol and no backend. The in-memory store
//! that is the reference, short enough to be read as the specification; `conformance` holds every backend to the same sentences.

pub mod backup;
pub mod check;
pub mod conformance;
pub mod durability;
pub mod error;
pub mod files;
pub mod memory;
mod numbers;
pub mod read;
pub mod table;

pub use check::{ByteProgress, CheckReport, Finding, Severity};
pub use durability::{Durability, Progress, ProgressWatcher, Sequence};
pub use error::{Blame, StoreError, is_transient};
pub use files::{StoreFile, StoreFiles};
pub use memory::MemoryStore;
pub use read::{LatestValue, Order, Scan, ScannedBlock, ScannedRow, ValueColumn};
pub use table::{
    BatchReader, Column, FieldColumn, MissingColumn, ReadOrder, SeriesSet, TableColumns, TableRead,
    TableSnapshot, TableStatus, TagColumn, TagMatcher, TagPredicate,
};

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, SeriesId, SeriesKey, Timestamp, limits};

/// A place that keeps rows. All calls are safe from any thread.
///
/// Identity of a row is (series, ts). Writing it again updates it field by field: of two writes of one key the one
/// with the later sequence wins, whatever the types of the two values, and other keys stay. So a repeated append is
/// harmless.
pub trait Store: Send + Sync + 'static {
    /// The series with this key, created if it is new.
    ///
    /// A new series needs no sync of its own: it becomes durable with, and not after, the first row appended to it.
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError>;

    /// The series with this key, if anybody has created it.
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId>;

    /// Takes a batch and returns the sequence at which it ends; never waits for a disk.
    ///
    /// The rows can be read at once. They are kept as `durability` says when [`Progress::reached`] for that class is
    /// at or past the returned sequence; only then may anybody be told so. After an `Err` nothing of the batch was
    /// taken. [`StoreError::Busy`] is backpressure: the same batch will be taken later, watchers are told when to try.
    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError>;

    /// As [`append`](Self::append), but makes no column: `None`, and nothing is taken, where the batch needs one that is
    /// not there. Costs no more than `append` where none is missing.
    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError>;

    /// The columns that a batch needs and its tables do not have, each once, in the order of the fields that need them.
    ///
    /// # Errors
    /// That a series is unknown, or a name breaks the rules.
    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError>;

    /// How far the store has come.
    fn progress(&self) -> Progress;

    /// Calls `watcher` after each change of [`Progress`] and whenever a busy store has room again.
    ///
    /// The call comes from the store's own thread and must not block or call back into the store's write side.
    fn watch(&self, watcher: Arc<dyn ProgressWatcher>);

    /// The newest value (by ts, then by sequence) of each key of a series; of all keys when `keys` is `None`.
    /// Keys that were never written are left out. Sorted by key.
    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError>;

    /// Visits the rows of one series in the order asked for, at most one per ts, in blocks until a `Break`.
    ///
    /// All rows that have a value of an asked key are in the blocks, others may be. The limit only says how many rows
    /// are likely to be wanted: blocks go on behind it. Memory use does not grow with the number of rows.
    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Visits the same rows one by one, until the limit or a `Break`. A row that has none of the asked keys is not
    /// visited and does not count.
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

    /// What tables there are, sorted by name. Nothing is read for it.
    ///
    /// # Errors
    /// When a backend that is not on this machine cannot be asked.
    fn tables(&self) -> Result<Vec<TableStatus>, StoreError>;

    /// A table as it is now; `None` if no series of it was ever created.
    ///
    /// # Errors
    /// When the backend cannot be asked. Files that cannot be read are reported by the readers.
    fn snapshot(&self, table: &str) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError>;

    /// Says for how long the rows of a table are kept; for good when `ttl` is `None`. Durable when it returns. A table
    /// that is new is created.
    ///
    /// # Errors
    /// As [`append`](Self::append), and that the name breaks the rules.
    fn set_ttl(&self, table: &str, ttl: Option<Duration>) -> Result<(), StoreError>;

    /// For how long the rows of a table are kept: what was said last, otherwise what the store was opened with. The
    /// same for a table that there is not yet.
    fn ttl(&self, table: &str) -> Option<Duration>;

    /// Drops a key of a table with the values of all its types, of all series. Durable when it returns. Returns `false`
    /// when the table has no such key.
    ///
    /// Readers that have a snapshot go on reading the values; later ones do not see them. A row that had values of
    /// dropped keys only stays a row. A value that comes later under the same name begins a new column with the name
    /// and the type of its own.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`StoreError::OverLimit`] beyond
    /// [`DROPPED_KEYS_PER_TABLE_MAX`](model::limits::DROPPED_KEYS_PER_TABLE_MAX). After an error the key may be dropped or not.
    fn drop_key(&self, table: &str, key: &str) -> Result<bool, StoreError>;

    /// Drops what is older than its table keeps it, and returns how many rows that were.
    ///
    /// Rows go by the day (UTC): a day goes when all of it is older than [`table::oldest_kept`], so a younger row is
    /// never dropped, and an older one may be read for up to a day longer, or for as long as it shares a file with
    /// younger ones, or until a call after one that found it in memory, or while `now` is further ahead than time can
    /// have passed: a wall clock may be wrong, and what is dropped is gone. Costs nothing for rows that stay.
    ///
    /// # Errors
    /// That the store is closed or sealed. [`StoreError::Io`] for a disk too full for a few bytes: later it will do.
    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// Sizes and health, cheap enough to be asked every second.
    fn status(&self) -> StoreStatus;

    /// Reads everything that is kept and compares it with its checksums and with the rest, while the store serves.
    ///
    /// # Errors
    /// What is damaged stands in the report; an error says that the check itself could not be made, or that this
    /// kind of store has no files.
    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        let _ = progress;
        Err(StoreError::Unsupported { what: "check" })
    }

    /// The store's files at this moment, with every row that was acknowledged before the call. They are kept while
    /// the answer lives, so it must not live for longer than the reading takes.
    ///
    /// # Errors
    /// As [`append`](Self::append), because rows in memory are brought into files first, or that this kind of store
    /// has no files.
    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        Err(StoreError::Unsupported { what: "back up" })
    }

    /// Makes everything durable that was appended and stops the store's threads. Later appends are refused.
    fn close(&self) -> Result<(), StoreError>;
}

/// What [`Store::status`] tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Why writes are refused, if they are. Reads go on.
    pub sealed: Option<String>,
    /// Why writes have to wait at present, if they have to (a full disk, merges that have fallen behind).
    pub busy: Option<String>,
    /// Why rows in memory wait before they go to parts, if they do: merges have fallen behind. Writes go on until memory is
    /// full.
    pub flush_held: Option<String>,
    /// Tables.
    pub tables: u64,
    /// Series.
    pub series: u64,
    /// Rows appended since the store was opened.
    pub rows_appended: u64,
    /// Log bytes handed over but not yet durable.
    pub log_pending_bytes: u64,
    /// Bytes of log that a recovery would read.
    pub log_bytes: u64,
    /// Bytes of rows in memory that no part holds yet.
    pub memtable_bytes: u64,
    /// Immutable parts.
    pub parts: u64,
    /// Their bytes on disk.
    pub part_bytes: u64,
    /// Most parts of one table; compaction keeps it down.
    pub parts_per_table_max: u64,
    /// Most parts of one table that a read of one moment looks into, those among them that are too large to be merged.
    pub parts_overlap_max: u64,
}

/// Refuses a batch with more rows or text than a batch may have.
pub fn check_batch_size(batch: &Batch) -> Result<(), StoreError> {
    let check = |what, actual: usize, limit: usize| match actual > limit {
        true => Err(StoreError::OverLimit { what, actual: actual as u64, limit: limit as u64 }),
        false => Ok(()),
    };
    check("rows of a batch", batch.len(), limits::BATCH_ROWS_MAX)?;
    check("text bytes of a batch", batch.text_bytes(), limits::BATCH_TEXT_BYTES_MAX)
}
