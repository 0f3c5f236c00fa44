//! The engine on disk: fjall's log-structured trees under one journal.
//!
//! Invariant 1: a batch is in the journal as one record with a checksum, across spaces. After a crash it is whole or absent.
//! Invariant 2: a sequence is published as durable only after the journal up to its batch is synced to the disk.
//! Invariant 3: batches are in the journal in the order of their sequences, because one lock orders the commits. So what a
//! crash loses is a tail.
//! Invariant 4: after a failed sync, and after a failed write of another cause than a lack, the store refuses batches forever; reads
//! continue.
//! Invariant 5: a lack of space, quota, descriptors or memory before a sync passes. The store is suspended: batches are busy. The
//! committer opens the database again in its place when there is room (`recovery.rs`).
//! Invariant 6: the store keeps the effects of all batches that are not durable. They are written once more, as one batch, after the
//! database was opened again; what was refused is in no batch. Their number of bytes is bounded (`limits::UNDURABLE_BYTES_MAX`).
//! Invariant 7: no handle of fjall outlives its opening. While the database is opened again, reads are busy; open scans and snapshots end
//! with an error that is busy (`readers.rs`).
//! Invariant 8: fjall never sleeps in a commit: a batch is refused before fjall is so far behind with its work (`backlog.rs`). A commit can
//! wait shortly for a lock of fjall, which its thread holds while it syncs the journal, and while it begins a journal file or a list of
//! tables (`docs/adr/0031-checkpoints-expiry-and-memory-of-keys.md`).
//! Invariant 9: a checkpoint is the content at one moment between two batches. Nobody writes to its files (`checkpoint.rs`).
//! Invariant 10: the memtables of all spaces have at most `memtables_bytes_max` and one batch (`backlog.rs`).
//! Invariant 11: a record that has expired is deleted by a usual batch, and only if it still has the value that has expired
//! (`sweeper.rs`).

mod backlog;
mod checkpoint;
mod commit;
mod committer;
mod core;
mod descriptors;
mod failure;
mod generation;
mod journal;
mod keeper;
mod options;
mod readers;
mod recovery;
mod resolve;
mod room;
mod snapshot;
mod state;
mod sweeper;
mod sweeps;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};

use crate::{
    Checkpoint, Expiry, KeyValueStore, KvError, KvStatus, Progress, ProgressWatcher, Sequence, Snapshot,
    Space, Value, WriteBatch,
};

use self::core::Core;
use failure::{Failure, read_failure};
use generation::Generation;
use journal::JournalFiles;
pub use options::EngineOptions;
use room::Room;
use snapshot::EngineSnapshot;

/// The longest wait of an opening until fjall has written to files what the journal had.
const SETTLING_MAX: Duration = Duration::from_secs(10);

/// A [`KeyValueStore`] in a directory.
pub struct EngineStore {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
        let io = |verb, error| KvError::io(verb, directory, error);
        fs::create_dir_all(directory).map_err(|error| io("make", error))?;
        let directory_file = File::open(directory).map_err(|error| io("open", error))?;
        let generation = Generation::open(directory, options).map_err(|failure| match failure {
            Failure::Lack(error) | Failure::Lasting(error) => error,
            Failure::Background => io("open", io::Error::other("a write failed")),
        })?;
        // A process that was killed may have left links.
        checkpoint::remove(directory).map_err(|error| io("remove the links of a checkpoint in", error))?;
        let settled = generation.settle(SETTLING_MAX);
        let core = Arc::new(Core {
            directory: directory.to_owned(),
            options: options.clone(),
            directory_file,
            generation: RwLock::new(Some(Arc::new(generation))),
            readers: Arc::default(),
            room: Room::new(directory),
            order: Mutex::new(()),
            state: Mutex::default(),
            work: Condvar::new(),
            chores: Condvar::new(),
            watchers: Mutex::default(),
            is_checkpoint_open: Arc::default(),
            sweeps: Mutex::default(),
            sweeping: Condvar::new(),
        });
        if let Err(failure) = settled {
            drop(core.failed(failure));
        }
        let store = Self { core, threads: Mutex::default() };
        let journal = JournalFiles::new(directory);
        store.spawn("kv-commit", move |core| committer::run(core, journal))?;
        store.spawn("kv-keep", keeper::run)?;
        Ok(store)
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Core) + Send + 'static) -> Result<(), KvError> {
        let core = Arc::clone(&self.core);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            let _guard = model::PanicEndsProcess::begin();
            run(&core);
        });
        let thread =
            thread.map_err(|error| KvError::io("start a thread for", &self.core.directory, error))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn end_threads(&self) {
        {
            // Not within a commit: its batch would come after the last sync.
            let _order = self.core.order.lock();
            self.core.state.lock().closed = true;
        }
        self.core.work.notify_all();
        self.core.chores.notify_all();
        self.core.sweeping.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // The thread cannot have panicked: a panic ends the process.
            drop(thread.join());
        }
    }
}

impl Drop for EngineStore {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl KeyValueStore for EngineStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value>, KvError> {
        self.core.check_open()?;
        // Held until the end of the read (invariant 7).
        let generation = self.core.generation()?;
        let Some(keyspace) = generation.known(space) else { return Ok(None) };
        let value = keyspace.get(key).map_err(|error| read_failure(&self.core.directory, error))?;
        Ok(value.map(Value::from))
    }

    fn commit(&self, batch: &WriteBatch) -> Result<Sequence, KvError> {
        commit::commit(&self.core, batch)
    }

    fn progress(&self) -> Progress {
        self.core.state.lock().progress
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.core.watchers.lock().push(watcher);
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, KvError> {
        self.core.check_open()?;
        let generation = self.core.generation()?;
        Ok(Box::new(EngineSnapshot::new(&generation, &self.core.readers, &self.core.directory)))
    }

    fn expire(&self, space: Space, expiry: Arc<dyn Expiry>) -> Result<(), KvError> {
        self.core.check_open()?;
        {
            let mut sweeps = self.core.sweeps.lock();
            sweeps.add(space, expiry);
            if !sweeps.has_thread {
                self.spawn("kv-sweep", sweeper::run)?;
                sweeps.has_thread = true;
            }
        }
        // Under the lock with which the sweeper pauses, so that it cannot miss this.
        let _state = self.core.state.lock();
        self.core.sweeping.notify_all();
        Ok(())
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, KvError> {
        self.core.check_open()?;
        checkpoint::checkpoint(&self.core).map(Some)
    }

    fn status(&self) -> KvStatus {
        let generation = self.core.generation().ok();
        let bytes = generation.map(|generation| (generation.disk_bytes(), generation.memory_bytes()));
        let (disk_bytes, memory_bytes) = bytes.unwrap_or_default();
        let state = self.core.state.lock();
        KvStatus {
            sealed: state.sealed.clone(),
            busy: state.reason_to_wait(),
            behind: state.behind(),
            disk_bytes,
            memory_bytes,
            undurable_bytes: state.undurable_bytes as u64,
            commits: state.progress.committed,
            syncs: state.syncs,
        }
    }

    fn close(&self) -> Result<(), KvError> {
        self.end_threads();
        let state = self.core.state.lock();
        match &state.sealed {
            Some(cause) if state.progress.durable < state.progress.committed => {
                Err(KvError::Sealed { cause: cause.clone() })
            }
            _ => Ok(()),
        }
    }
}
