//! The contract of a key-value store.

use std::sync::Arc;

use crate::check::{self, CheckReport, RecordProgress};
use crate::expiry;
use crate::snapshot::{Scan, Snapshot};
use crate::{
    Checkpoint, Direction, Expiry, KeyRange, KvError, KvStatus, Progress, ProgressWatcher, Sequence, Space,
    SweepBudget, Swept, Value, WriteBatch,
};

/// A backend that keeps keys and values, ordered by the bytes of the key within a space. All calls are safe from any thread.
pub trait KeyValueStore: Send + Sync + 'static {
    /// The value of a key; `None` if there is no such key. A space that was never written has no keys.
    ///
    /// # Errors
    /// [`KvError::Io`], [`KvError::Corrupt`], [`KvError::Closed`]. [`KvError::Busy`] during a lack of descriptors or memory, and for some
    /// moments after a lack of any resource.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value>, KvError>;

    /// The keys of a range with their values, as they are now: later batches do not change a scan.
    ///
    /// A scan holds old versions of values on disk and in memory, so it should not be kept for long. A store that recovers from a
    /// lack of space, descriptors or memory ends it with [`KvError::Busy`]: begin it again.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get), also from the scan.
    fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Scan, KvError> {
        self.snapshot()?.scan(space, range, direction)
    }

    /// Does all operations of a batch, or none of them after an `Err`. Returns the sequence of the batch. Never waits for a
    /// write to the disk; a deletion of a range reads the keys of the range.
    ///
    /// The batch can be read at once. It is durable when [`Progress::durable`] is at or past the sequence; the caller must
    /// not acknowledge it earlier. A batch that is not durable yet is lost as a whole or not at all, and never without the
    /// later ones. A batch without operations is durable when all earlier ones are. [`KvError::Busy`] is backpressure, also for a
    /// lack of space, descriptors or memory: the store takes the same batch later, and calls the watchers when it has room.
    ///
    /// # Errors
    /// The errors of [`WriteBatch::check`], [`KvError::OverLimit`] beyond [`crate::limits::RANGE_KEYS_MAX`] and [`crate::limits::SPACES_MAX`],
    /// [`KvError::Busy`], [`KvError::Sealed`], and those of [`get`](Self::get).
    fn commit(&self, batch: &WriteBatch) -> Result<Sequence, KvError>;

    /// The progress of the store.
    fn progress(&self) -> Progress;

    /// Calls `watcher` after each change of [`Progress`] and whenever a busy store has room again.
    fn watch(&self, watcher: Arc<dyn ProgressWatcher>);

    /// All spaces as they are now, at one point in time.
    ///
    /// # Errors
    /// [`KvError::Closed`].
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, KvError>;

    /// Lets the store delete the records of a space that have expired, sooner or later; an earlier function of the space is replaced. A
    /// reader must treat a record that has expired as absent. Snapshots keep what they have. A store without threads, such as the
    /// reference, deletes nothing by itself.
    ///
    /// # Errors
    /// [`KvError::Closed`], and [`KvError::Io`] if the system has no thread left.
    fn expire(&self, space: Space, expiry: Arc<dyn Expiry>) -> Result<(), KvError> {
        let _not_swept = (space, expiry);
        Ok(())
    }

    /// Deletes the records of the next slice of a space that have expired at a time; the slice begins after a key. A record that is
    /// written while this runs stays.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) and of a scan. Nothing is deleted then.
    fn sweep(
        &self,
        space: Space,
        expiry: &dyn Expiry,
        now_us: i64,
        after: Option<&[u8]>,
        budget: SweepBudget,
    ) -> Result<Swept, KvError> {
        let (batch, mut swept) = expiry::slice(&*self.snapshot()?, space, expiry, now_us, after, budget)?;
        if !batch.is_empty() {
            swept.sequence = Some(self.commit(&batch)?);
        }
        Ok(swept)
    }

    /// The files of the store at one point in time, for a backup; `None` if the store has no files. Batches that were committed before
    /// the call are in it, each batch as a whole. Commits wait while the store notes what belongs to it, which does not depend on the
    /// number of records. Files that the store does not need any more stay on the disk until the checkpoint is dropped.
    ///
    /// # Errors
    /// [`KvError::Busy`] while there is another checkpoint, and during a lack; [`KvError::Sealed`], [`KvError::Closed`], [`KvError::Io`].
    fn checkpoint(&self) -> Result<Option<Checkpoint>, KvError> {
        Ok(None)
    }

    /// Sizes and health. The call is cheap enough for every second.
    fn status(&self) -> KvStatus;

    /// Reads all records, and compares them with their checksums, while the store serves.
    ///
    /// # Errors
    /// When the check itself fails. Damage is not an error; it is in the report.
    fn check(&self, progress: &mut RecordProgress<'_>) -> Result<CheckReport, KvError> {
        check::check(&*self.snapshot()?, progress)
    }

    /// Makes all batches durable, and stops the threads of the store. The store refuses later calls.
    ///
    /// # Errors
    /// [`KvError::Sealed`] if batches could not be made durable.
    fn close(&self) -> Result<(), KvError>;
}
