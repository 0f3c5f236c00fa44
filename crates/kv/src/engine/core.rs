//! What the store and its threads share.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Condvar, Mutex, RwLock};

use super::failure::Failure;
use super::generation::Generation;
use super::options::EngineOptions;
use super::readers::Readers;
use super::room::Room;
use super::state::{State, Suspension};
use super::sweeps::Sweeps;
use crate::limits::UNDURABLE_BYTES_MAX;
use crate::memory::check_undurable;
use crate::{KvError, ProgressWatcher, WriteBatch};

/// What the store and its threads share. Locks are taken in this order: `order`, `generation`, `state`.
pub(super) struct Core {
    pub(super) directory: PathBuf,
    pub(super) options: EngineOptions,
    /// Opened before the database, so that the system tells on it of all writes that were lost since.
    pub(super) directory_file: File,
    /// `None` while the database is opened again.
    pub(super) generation: RwLock<Option<Arc<Generation>>>,
    pub(super) readers: Arc<Readers>,
    pub(super) room: Room,
    /// Orders the commits.
    pub(super) order: Mutex<()>,
    pub(super) state: Mutex<State>,
    /// The committer waits for batches.
    pub(super) work: Condvar,
    /// The keeper waits for full spaces, and for the end of a lack of room.
    pub(super) chores: Condvar,
    pub(super) watchers: Mutex<Vec<Arc<dyn ProgressWatcher>>>,
    /// What the sweeper does. Its lock is taken last.
    pub(super) sweeps: Mutex<Sweeps>,
    /// The sweeper pauses.
    pub(super) sweeping: Condvar,
    /// There is at most one checkpoint at a time.
    pub(super) is_checkpoint_open: Arc<AtomicBool>,
}

impl Core {
    /// The database.
    ///
    /// # Errors
    /// [`KvError::Closed`]; [`KvError::Busy`] while it is opened again, [`KvError::Sealed`] if that failed.
    pub(super) fn generation(&self) -> Result<Arc<Generation>, KvError> {
        if let Some(generation) = &*self.generation.read() {
            return Ok(Arc::clone(generation));
        }
        let state = self.state.lock();
        match (&state.sealed, &state.suspended) {
            (Some(cause), _) => Err(KvError::Sealed { cause: cause.clone() }),
            (None, Some(suspension)) => Err(suspension.busy()),
            (None, None) => {
                Err(KvError::Busy { reason: "the key-value store is being opened again".to_owned() })
            }
        }
    }

    pub(super) fn check_open(&self) -> Result<(), KvError> {
        if self.state.lock().closed { Err(KvError::Closed) } else { Ok(()) }
    }

    /// Refuses to write while the store is closed, sealed or suspended. Returns the bytes of batches that are not durable.
    pub(super) fn check_committing(&self) -> Result<usize, KvError> {
        let state = self.state.lock();
        if state.closed {
            return Err(KvError::Closed);
        }
        if let Some(cause) = &state.sealed {
            return Err(KvError::Sealed { cause: cause.clone() });
        }
        match &state.suspended {
            Some(suspension) => Err(suspension.busy()),
            None => Ok(state.undurable_bytes),
        }
    }

    /// Refuses a batch that cannot be written now.
    pub(super) fn check_writable(&self, batch: &WriteBatch) -> Result<(), KvError> {
        let undurable_bytes = self.check_committing()?;
        check_undurable(undurable_bytes, batch.bytes()).map_err(|busy| self.refused(busy, true))?;
        match self.room.lack_for(batch.bytes() as u64) {
            Some(reason) => Err(self.refused(KvError::Busy { reason }, false)),
            None => Ok(()),
        }
    }

    /// Notes that a batch was refused, so that the watchers hear when there is room. `is_behind`: see [`State::set_busy`].
    pub(super) fn refused(&self, error: KvError, is_behind: bool) -> KvError {
        if let KvError::Busy { reason } = &error {
            self.state.lock().set_busy(reason.clone(), is_behind);
            self.chores.notify_one();
        }
        error
    }

    /// Ends the refusal of batches if there is room.
    pub(super) fn end_refusal(&self) {
        if !self.state.lock().is_busy() {
            return;
        }
        // While the database is opened again, the end of that tells the watchers.
        let Ok(generation) = self.generation() else { return };
        let lack = self.room.lack_for(0);
        let is_behind = lack.is_none();
        let reason = lack.or_else(|| generation.backlog_of_all());
        let mut state = self.state.lock();
        match reason {
            Some(reason) => state.set_busy(reason, is_behind),
            None if state.undurable_bytes <= UNDURABLE_BYTES_MAX / 2 => {
                state.end_busy();
                drop(state);
                self.notify_watchers();
            }
            // The committer looks again after the next sync.
            None => {}
        }
    }

    /// Acts on a failed write: the database is opened again later, or the store refuses all later batches. Returns the error for the
    /// caller.
    pub(super) fn failed(&self, failure: Failure) -> KvError {
        match failure {
            Failure::Lack(error) => self.suspend(Suspension::of_lack(&error)),
            Failure::Background => self.suspend(Suspension::of_background(&self.directory)),
            Failure::Lasting(error) => {
                self.seal(&error);
                error
            }
        }
    }

    fn suspend(&self, suspension: Suspension) -> KvError {
        let mut state = self.state.lock();
        if let Some(cause) = &state.sealed {
            return KvError::Sealed { cause: cause.clone() };
        }
        let busy = suspension.busy();
        if state.suspended.is_none() {
            tracing::warn!(reason = suspension.reason, "the key-value store accepts no writes for some time");
            state.suspended = Some(suspension);
        }
        drop(state);
        self.work.notify_all();
        busy
    }

    /// Refuses all later batches.
    pub(super) fn seal(&self, error: &KvError) {
        let mut state = self.state.lock();
        if state.sealed.is_none() {
            tracing::error!(%error, "the key-value store no longer accepts writes");
            state.sealed = Some(error.to_string());
            state.progress.sealed = true;
        }
        drop(state);
        self.work.notify_all();
        self.chores.notify_all();
        self.sweeping.notify_all();
        self.notify_watchers();
    }

    pub(super) fn notify_watchers(&self) {
        let progress = self.state.lock().progress;
        let watchers = self.watchers.lock().clone();
        watchers.iter().for_each(|watcher| watcher.progress(progress));
    }
}
