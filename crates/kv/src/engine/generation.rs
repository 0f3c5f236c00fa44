//! One opening of the database of fjall. After a lack of a resource the store opens the next one in its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use parking_lot::RwLock;

use super::backlog::{self, backlog};
use super::failure::Failure;
use super::options::EngineOptions;
use crate::{Key, Space, Value};

/// Bytes of the journal on disk before the engine writes the oldest spaces to files.
const JOURNAL_BYTES: u64 = 128 << 20;

/// The pause before the next look at the backlog.
const SETTLE_PAUSE: Duration = Duration::from_millis(2);

/// The last write of a batch to a key; `None` deletes it.
pub(super) type Change = (Space, Key, Option<Value>);

/// One opening of the database.
pub(super) struct Generation {
    database: Database,
    directory: PathBuf,
    memtable_bytes: u64,
    memtables_bytes_max: u64,
    /// The bytes of all spaces at which the keeper looks again whether some should be written to files.
    next_look: AtomicU64,
    /// The spaces that were ever written.
    spaces: RwLock<BTreeMap<Space, Keyspace>>,
}

impl Generation {
    /// Opens the database of a directory; makes an empty one if there is none. Cuts off what a crash has half written.
    pub(super) fn open(directory: &Path, options: &EngineOptions) -> Result<Self, Failure> {
        let database = Database::builder(directory)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES)
            .manual_journal_persist(true)
            .worker_threads(1)
            .open()
            .map_err(|error| Failure::of(directory, "open", error))?;
        let generation = Self {
            database,
            directory: directory.to_owned(),
            memtable_bytes: options.memtable_bytes,
            memtables_bytes_max: options.memtables_bytes_max,
            next_look: AtomicU64::new(options.memtables_bytes_max / 2),
            spaces: RwLock::default(),
        };
        for name in generation.database.list_keyspace_names() {
            generation.make_keyspace(Space::named(&name).map_err(Failure::Lasting)?)?;
        }
        Ok(generation)
    }

    /// Waits until writes need not wait, but for no longer than this time: after an opening fjall writes to files what the journal had.
    pub(super) fn settle(&self, longest: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            self.flush_full_spaces()?;
            if self.backlog_of_all().is_none() || began.elapsed() >= longest {
                return Ok(());
            }
            self.write_journal()?;
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// The spaces that were ever written.
    pub(super) fn spaces(&self) -> BTreeMap<Space, Keyspace> {
        self.spaces.read().clone()
    }

    /// The keyspace of a space; `None` if it was never written.
    pub(super) fn known(&self, space: Space) -> Option<Keyspace> {
        self.spaces.read().get(&space).cloned()
    }

    pub(super) fn snapshot(&self) -> fjall::Snapshot {
        self.database.snapshot()
    }

    /// Bytes of all files, 0 if that is not known.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.database.disk_space().unwrap_or(0)
    }

    /// Writes changes as one batch, which is whole or absent after a crash.
    ///
    /// Invariant: [`backlog`](Self::backlog) of the spaces was `None` before under the lock that orders the commits. So fjall does not
    /// let the caller sleep.
    pub(super) fn write(&self, changes: &[Change]) -> Result<(), Failure> {
        let mut writes = self.database.batch();
        for (space, key, value) in changes {
            let keyspace = match self.known(*space) {
                Some(keyspace) => keyspace,
                None => self.make_keyspace(*space)?,
            };
            match value {
                Some(value) => writes.insert(&keyspace, key.clone(), value.clone()),
                None => writes.remove(&keyspace, key.clone()),
            }
        }
        writes.commit().map_err(|error| Failure::of(&self.directory, "write", error))
    }

    /// Writes the buffer of the journal to the system. Also finds out whether a write in the background failed.
    pub(super) fn write_journal(&self) -> Result<(), Failure> {
        let persisted = self.database.persist(fjall::PersistMode::Buffer);
        persisted.map_err(|error| Failure::of(&self.directory, "write the journal of", error))
    }

    /// Bytes of all spaces in memory, also of those that are being written to files.
    pub(super) fn memtables_bytes(&self) -> u64 {
        self.database.write_buffer_size()
    }

    /// Bytes of the spaces and of the cache.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memtables_bytes() + self.database.cache_size()
    }

    /// Why every write has to wait; `None` if it need not. Only bytes that leave memory end this, so the batch that passes the bound is
    /// written: more than the bound is in memory for one batch at most.
    fn backlog_of_memory(&self) -> Option<String> {
        let (mut bytes, limit) = (self.memtables_bytes(), self.memtables_bytes_max);
        if bytes < limit {
            return None;
        }
        // fjall counts a batch after it was written, so its count can go wrong when the batch is in a file before that.
        let known = self.spaces.read();
        if known.values().all(|keyspace| keyspace.sealed_memtable_count() == 0) {
            bytes = known.values().map(backlog::active_bytes).sum();
        }
        (bytes >= limit).then(|| format!("{bytes} bytes of all spaces are in memory, the limit is {limit}"))
    }

    /// Why a write to one of these spaces has to wait; `None` if it need not.
    pub(super) fn backlog(&self, spaces: impl IntoIterator<Item = Space>) -> Option<String> {
        if let Some(reason) = self.backlog_of_memory() {
            return Some(reason);
        }
        let known = self.spaces.read();
        spaces.into_iter().find_map(|space| backlog(space, known.get(&space)?, self.memtable_bytes))
    }

    /// Why a write to any space has to wait; `None` if it need not.
    pub(super) fn backlog_of_all(&self) -> Option<String> {
        if let Some(reason) = self.backlog_of_memory() {
            return Some(reason);
        }
        let known = self.spaces.read();
        known.iter().find_map(|(space, keyspace)| backlog(*space, keyspace, self.memtable_bytes))
    }

    /// Whether one of these spaces, or some of all spaces, should be written to files.
    pub(super) fn is_nearly_full(&self, spaces: impl IntoIterator<Item = Space>) -> bool {
        if self.memtables_bytes() >= self.next_look.load(Ordering::Relaxed) {
            return true;
        }
        let known = self.spaces.read();
        spaces
            .into_iter()
            .filter_map(|space| known.get(&space))
            .any(|keyspace| backlog::is_nearly_full(keyspace, self.memtable_bytes))
    }

    /// Lets fjall write the spaces to files that have many bytes in memory. When all together have many, also the largest ones, until the
    /// others have less than half of the bound: the other half is for those that are being written.
    pub(super) fn flush_full_spaces(&self) -> Result<(), Failure> {
        let mut active: Vec<(u64, Keyspace)> = Vec::new();
        for keyspace in self.spaces().into_values() {
            if backlog::may_flush(&keyspace, self.memtable_bytes) {
                self.flush(&keyspace)?;
            } else {
                active.push((backlog::active_bytes(&keyspace), keyspace));
            }
        }
        let largest = backlog::largest(active, self.memtables_bytes_max / 2);
        largest.iter().try_for_each(|keyspace| self.flush(keyspace))?;
        let next_look = self.memtables_bytes() + self.memtables_bytes_max / 16;
        self.next_look.store(next_look.max(self.memtables_bytes_max / 2), Ordering::Relaxed);
        Ok(())
    }

    fn flush(&self, keyspace: &Keyspace) -> Result<(), Failure> {
        let rotated = keyspace.rotate_memtable();
        rotated.map(drop).map_err(|error| Failure::of(&self.directory, "flush", error))
    }

    fn make_keyspace(&self, space: Space) -> Result<Keyspace, Failure> {
        // fjall keeps the options of a keyspace in its files. The store decides itself when it writes a space to a file
        // (`flush_full_spaces`), so fjall is given no limit: beyond it each commit would queue a message for fjall's thread, and a full
        // queue stops that thread for ever.
        let options =
            || KeyspaceCreateOptions::default().max_memtable_size(u64::MAX).manual_journal_persist(true);
        let keyspace = self.database.keyspace(space.name(), options);
        let keyspace = keyspace.map_err(|error| Failure::of(&self.directory, "open a space of", error))?;
        self.spaces.write().insert(space, keyspace.clone());
        Ok(keyspace)
    }
}
