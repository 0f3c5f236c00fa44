//! What keeps a store in order.

use std::sync::Arc;
use std::time::Duration;

use model::{TableName, Timestamp};

use crate::check::{ByteProgress, CheckReport};
use crate::definitions::{DefinitionCounts, DefinitionLimits};
use crate::error::StoreError;
use crate::files::StoreFiles;
use crate::rewritten::Rewritten;
use crate::status::StoreStatus;

/// Settings of tables, the state of the store, its files and its end.
pub trait Maintenance: Send + Sync + 'static {
    /// Sets how long the store keeps the rows of a table; forever when `ttl` is `None`. The setting is durable when the
    /// call returns. The store creates the table if it is new.
    ///
    /// # Errors
    /// The errors of [`append`](crate::Writer::append).
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
    /// The errors of [`append`](crate::Writer::append), and [`StoreError::OverLimit`] beyond
    /// [`DROPPED_KEYS_PER_TABLE_MAX`](model::limits::DROPPED_KEYS_PER_TABLE_MAX). After an error the key may be dropped or not.
    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError>;

    /// Drops a table with its series, rows, columns and its time to live. The drop is durable when the call returns. Returns
    /// `false` when there is no such table.
    ///
    /// The series end as with [`delete_series`](crate::Writer::delete_series). The same name makes a new table, which inherits nothing.
    ///
    /// # Errors
    /// The errors of [`append`](crate::Writer::append), and [`StoreError::OverLimit`] beyond
    /// [`DROPPED_TABLES_MAX`](model::limits::DROPPED_TABLES_MAX). After an error the table may be dropped or not.
    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError>;

    /// Drops the rows that are older than their table keeps them, and returns their number.
    ///
    /// The store drops whole days (UTC): a day is dropped when all of it is older than [`oldest_kept`](crate::table::oldest_kept). So the
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

    /// Sets who limits what callers define from now on: tables, series and columns. The store asks `limits` before each new definition
    /// and refuses what `limits` refuses. What is defined stays.
    fn limit_definitions(&self, limits: Arc<dyn DefinitionLimits>);

    /// What the store has defined for each namespace, without what was dropped or deleted.
    fn definitions(&self) -> DefinitionCounts;

    /// Sizes and health. The call is cheap enough for every second.
    fn status(&self) -> StoreStatus;

    /// Reads all files, and compares them with their checksums and with each other, while the store serves.
    ///
    /// # Errors
    /// When the check itself fails, or when this kind of store has no files. Damage is not an error; it is in the report.
    fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        let _ = progress;
        Err(StoreError::Unsupported { what: "check" })
    }

    /// The files of the store at this moment, with every row that was acknowledged before the call. The store keeps the
    /// files while the answer lives, so the caller should drop the answer as soon as it has read them.
    ///
    /// # Errors
    /// The errors of [`append`](crate::Writer::append), because the store first writes the rows in memory into files, and
    /// [`StoreError::Unsupported`] when this kind of store has no files.
    fn files(&self) -> Result<Box<dyn StoreFiles>, StoreError> {
        Err(StoreError::Unsupported { what: "back up" })
    }

    /// Writes all rows in memory into files, and waits until that is done. The store does this by itself when memory or log have grown.
    ///
    /// # Errors
    /// [`StoreError::Closed`], [`StoreError::Sealed`], [`StoreError::Busy`] while the disk has no room, and
    /// [`StoreError::Unsupported`] when this kind of store has no files.
    fn flush(&self) -> Result<Rewritten, StoreError> {
        Err(StoreError::Unsupported { what: "flush" })
    }

    /// Gives memory back that the store can do without: cached columns, and rows in memory, whose flush it begins. It does not wait
    /// for the flush.
    fn relieve_memory(&self) {}

    /// Merges files until there is nothing to merge, and waits until that is done. The store does this by itself.
    ///
    /// # Errors
    /// The errors of [`flush`](Self::flush).
    fn compact(&self) -> Result<Rewritten, StoreError> {
        Err(StoreError::Unsupported { what: "compact" })
    }

    /// Makes all appended rows durable and stops the threads of the store. The store refuses later appends.
    fn close(&self) -> Result<(), StoreError>;
}
