//! What writes rows.

use std::sync::Arc;

use model::{Batch, SeriesId, SeriesKey};

use crate::deletion::Deletion;
use crate::durability::{Durability, Progress, ProgressWatcher, Sequence};
use crate::error::StoreError;
use crate::table::{MissingColumn, SeriesSet};
use crate::ticket::Ticket;

/// Takes rows and deletions, and states when they are durable.
///
/// The identity of a row is (series, ts). A second write of a row updates it field by field: of two writes of one key
/// the one with the later sequence wins, whatever the types of the two values, and the other keys stay. So a repeated
/// append is harmless.
pub trait Writer: Send + Sync + 'static {
    /// The series with this key. The store creates the series if it is new.
    ///
    /// A new series needs no sync of its own: it becomes durable no later than the first row that is appended to it.
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError>;

    /// Takes a batch and returns the sequence at which it ends. Never waits for a disk.
    ///
    /// The rows can be read at once. `durability` holds for them when [`Progress::reached`] for that class is at or past
    /// the returned sequence, and [`late_failure`](Self::late_failure) has no error of them; the caller must not acknowledge them
    /// earlier. After an `Err` the store has taken no row of
    /// the batch. [`StoreError::Rows`] names every row that the store refuses for something in it, such as a series that it does not
    /// know: without these rows, or the refused fields of them, it takes the batch. [`StoreError::OverLimit`] states that the
    /// batch as a whole is too large: its sender divides it. [`StoreError::Busy`] is backpressure: the store takes the same batch later, and calls the watchers
    /// when it has room.
    fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError>;

    /// Like [`append`](Self::append), but defines no column. If the batch needs a column that its table does not have,
    /// the store accepts no row of it and returns `None`. If no column is missing, this costs no more than `append`.
    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError>;

    /// The columns that a batch needs and its tables do not have, once for each series that needs one, in the order of the fields
    /// that need them.
    ///
    /// # Errors
    /// [`StoreError::Rows`] names the rows of unknown series, and those with a key that breaks the rules for names.
    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError>;

    /// The error of a write that the store took and then lost, as a whole or in part.
    ///
    /// A failure of a single write neither seals the store nor holds up its progress: [`Progress`] passes the sequences of the
    /// write, and the store has the error before it passes them. Readers may find all rows of such a write, some or none; the
    /// sender repeats it. A class that the store had reached before keeps its promise for the write and no other.
    ///
    /// A backend that writes everything to one log knows no such failure: whatever it cannot write seals it.
    fn late_failure(&self, ticket: Ticket) -> Option<StoreError> {
        let _ = ticket;
        None
    }

    /// The progress of the store.
    fn progress(&self) -> Progress;

    /// Calls `watcher` after each change of [`Progress`] and whenever a busy store has room again.
    ///
    /// A thread of the store makes the call. The watcher must not block, and must not call the write side of the store.
    fn watch(&self, watcher: Arc<dyn ProgressWatcher>);

    /// Deletes rows, or the values of some keys, that the store has now. Returns the sequence of the deletion: it is as
    /// durable as `durability` states when [`Progress::reached`] for that class is at or past it. Never waits for a disk.
    ///
    /// Reads do not find the rows from now on; a snapshot that a reader holds keeps them. A row that is appended later stays,
    /// whatever its time. A row whose values were all deleted by keys stays a row without values, as after
    /// [`drop_key`](crate::Maintenance::drop_key). A deletion that is not durable yet is lost as a whole or not at all. The disk has the
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
    /// The errors of [`delete_rows`](Self::delete_rows).
    fn delete_series(&self, series: &SeriesSet, durability: Durability) -> Result<Sequence, StoreError>;
}
