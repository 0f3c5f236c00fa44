//! The engine on disk: fjall's log-structured trees under one journal.
//!
//! Invariant 1: a batch is in the journal as one record with a checksum, across spaces. After a crash it is whole or absent.
//! Invariant 2: a sequence is published as durable only after the journal up to its batch is synced to the disk.
//! Invariant 3: batches are in the journal in the order of their sequences, because one lock orders the commits. So what a
//! crash loses is a tail.
//! Invariant 4: after a failed write or sync the store refuses batches; reads continue. A lack of file descriptors before a sync is not a
//! failure: the committer waits for it to end.

mod committer;
mod core;
mod descriptors;
mod journal;
mod resolve;
mod snapshot;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use fjall::Database;
use parking_lot::{Condvar, Mutex, RwLock};

use crate::{
    KeyValueStore, KvError, KvStatus, Progress, ProgressWatcher, Sequence, Snapshot, Space, Value, WriteBatch,
};

use self::core::{Core, failure, open_keyspace};
use journal::JournalFiles;
use snapshot::EngineSnapshot;

/// Bytes of the journal on disk before the engine writes the oldest spaces to files.
const JOURNAL_BYTES: u64 = 128 << 20;

/// The options of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of the cache of blocks.
    pub cache_bytes: u64,
    /// Bytes of a space in memory before the engine writes them to a file.
    pub memtable_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, memtable_bytes: 8 << 20 }
    }
}

/// A [`KeyValueStore`] in a directory.
pub struct EngineStore {
    core: Arc<Core>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for EngineStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineStore").field("directory", &self.core.directory).finish_non_exhaustive()
    }
}

impl EngineStore {
    /// Opens the store of a directory; makes an empty one if there is none. Recovers what a crash has left.
    ///
    /// # Errors
    /// [`KvError::InUse`], [`KvError::Io`] and [`KvError::Corrupt`].
    pub fn open(directory: &Path, options: &EngineOptions) -> Result<Self, KvError> {
        let database = Database::builder(directory)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES)
            .manual_journal_persist(true)
            .worker_threads(1)
            .open()
            .map_err(|error| failure(directory, "open", error))?;
        let mut spaces = BTreeMap::new();
        for name in database.list_keyspace_names() {
            let keyspace = open_keyspace(&database, &name, options.memtable_bytes, directory)?;
            spaces.insert(Space::named(&name)?, keyspace);
        }
        let journal = JournalFiles::new(directory);
        let core = Arc::new(Core {
            database,
            directory: directory.to_owned(),
            memtable_bytes: options.memtable_bytes,
            spaces: RwLock::new(spaces),
            order: Mutex::new(()),
            state: Mutex::default(),
            work: Condvar::new(),
            watchers: Mutex::default(),
        });
        let committer = {
            let core = Arc::clone(&core);
            std::thread::Builder::new()
                .name("kv-commit".into())
                .spawn(move || {
                    let _guard = model::PanicEndsProcess::begin();
                    committer::run(&core, journal);
                })
                .map_err(|error| KvError::io("start a thread for", directory, error))?
        };
        Ok(Self { core, committer: Mutex::new(Some(committer)) })
    }

    fn end_committer(&self) {
        {
            // Not within a commit: its batch would come after the last sync.
            let _order = self.core.order.lock();
            self.core.state.lock().closed = true;
        }
        self.core.work.notify_all();
        if let Some(thread) = self.committer.lock().take() {
            // The thread cannot have panicked: a panic ends the process.
            drop(thread.join());
        }
    }
}

impl Drop for EngineStore {
    fn drop(&mut self) {
        self.end_committer();
    }
}

impl KeyValueStore for EngineStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value>, KvError> {
        self.core.check_open()?;
        let Some(keyspace) = self.core.spaces.read().get(&space).cloned() else { return Ok(None) };
        let value = keyspace.get(key).map_err(|error| self.core.failure("read", error))?;
        Ok(value.map(Value::from))
    }

    fn commit(&self, batch: &WriteBatch) -> Result<Sequence, KvError> {
        batch.check()?;
        let core = &self.core;
        let _order = core.order.lock();
        core.check_writable(batch)?;
        let changes = resolve::resolve(core, batch)?;
        let mut writes = core.database.batch();
        for ((space, key), value) in changes {
            let keyspace = core.keyspace(space)?;
            match value {
                Some(value) => writes.insert(&keyspace, key, value),
                None => writes.remove(&keyspace, key),
            }
        }
        if let Err(error) = writes.commit() {
            let error = core.failure("write", error);
            core.seal(&error);
            return Err(error);
        }
        let mut state = core.state.lock();
        state.progress.committed += 1;
        state.undurable_bytes += batch.bytes();
        core.work.notify_one();
        Ok(state.progress.committed)
    }

    fn progress(&self) -> Progress {
        self.core.state.lock().progress
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.core.watchers.lock().push(watcher);
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, KvError> {
        self.core.check_open()?;
        // A space that is made after the snapshot has no keys in it.
        let spaces = self.core.spaces.read().clone();
        let (snapshot, directory) = (self.core.database.snapshot(), self.core.directory.clone());
        Ok(Box::new(EngineSnapshot { snapshot, spaces, directory }))
    }

    fn status(&self) -> KvStatus {
        let disk_bytes = self.core.database.disk_space().unwrap_or(0);
        let state = self.core.state.lock();
        KvStatus {
            sealed: state.sealed.clone(),
            busy: state
                .lack
                .clone()
                .or_else(|| state.is_busy.then(|| "too many bytes wait for the disk".to_owned())),
            disk_bytes,
            undurable_bytes: state.undurable_bytes as u64,
            commits: state.progress.committed,
            syncs: state.syncs,
        }
    }

    fn close(&self) -> Result<(), KvError> {
        self.end_committer();
        let state = self.core.state.lock();
        match &state.sealed {
            Some(cause) if state.progress.durable < state.progress.committed => {
                Err(KvError::Sealed { cause: cause.clone() })
            }
            _ => Ok(()),
        }
    }
}
