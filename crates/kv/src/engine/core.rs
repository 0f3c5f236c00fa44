//! What the store and its committer share.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::memory::check_undurable;
use crate::{KvError, Progress, ProgressWatcher, Space, WriteBatch};

/// What the store and its committer share.
pub(super) struct Core {
    pub(super) database: Database,
    pub(super) directory: PathBuf,
    pub(super) memtable_bytes: u64,
    /// The spaces that were ever written.
    pub(super) spaces: RwLock<BTreeMap<Space, Keyspace>>,
    /// Orders the commits.
    pub(super) order: Mutex<()>,
    pub(super) state: Mutex<State>,
    /// The committer waits for batches.
    pub(super) work: Condvar,
    pub(super) watchers: Mutex<Vec<Arc<dyn ProgressWatcher>>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) progress: Progress,
    pub(super) undurable_bytes: usize,
    pub(super) syncs: u64,
    pub(super) sealed: Option<String>,
    /// A commit was refused since the last sync: the watchers hear of the room after the next one.
    pub(super) is_busy: bool,
    /// Why the committer waits for file descriptors; `None` when it does not.
    pub(super) lack: Option<String>,
    pub(super) closed: bool,
}

impl Core {
    pub(super) fn check_open(&self) -> Result<(), KvError> {
        if self.state.lock().closed { Err(KvError::Closed) } else { Ok(()) }
    }

    pub(super) fn check_writable(&self, batch: &WriteBatch) -> Result<(), KvError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(KvError::Closed);
        }
        if let Some(cause) = &state.sealed {
            return Err(KvError::Sealed { cause: cause.clone() });
        }
        let checked = check_undurable(state.undurable_bytes, batch.bytes());
        state.is_busy |= checked.is_err();
        checked
    }

    /// The keyspace of a space; makes it if there is none.
    pub(super) fn keyspace(&self, space: Space) -> Result<Keyspace, KvError> {
        if let Some(keyspace) = self.spaces.read().get(&space) {
            return Ok(keyspace.clone());
        }
        let keyspace = open_keyspace(&self.database, space.name(), self.memtable_bytes, &self.directory)?;
        self.spaces.write().insert(space, keyspace.clone());
        Ok(keyspace)
    }

    pub(super) fn failure(&self, verb: &'static str, error: fjall::Error) -> KvError {
        failure(&self.directory, verb, error)
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
        self.notify_watchers();
    }

    pub(super) fn notify_watchers(&self) {
        let progress = self.state.lock().progress;
        let watchers = self.watchers.lock().clone();
        watchers.iter().for_each(|watcher| watcher.progress(progress));
    }
}

pub(super) fn open_keyspace(
    database: &Database,
    name: &str,
    memtable_bytes: u64,
    directory: &Path,
) -> Result<Keyspace, KvError> {
    let options =
        || KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes).manual_journal_persist(true);
    database.keyspace(name, options).map_err(|error| failure(directory, "open a space of", error))
}

pub(super) fn failure(directory: &Path, verb: &'static str, error: fjall::Error) -> KvError {
    match error {
        fjall::Error::Locked => KvError::InUse { path: directory.to_owned() },
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            KvError::io(verb, directory, error)
        }
        fjall::Error::Poisoned => {
            KvError::io(verb, directory, io::Error::other("an earlier write has failed"))
        }
        error => KvError::Corrupt { path: directory.to_owned(), reason: error.to_string() },
    }
}
