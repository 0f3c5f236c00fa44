//! The reference store: maps behind one lock, short enough to be read as the specification.
//!
//! Nothing survives the process, so a batch is durable as soon as it is committed, unless a test delays durability with
//! [`MemoryStore::hold`]. The thread that causes a change calls the watchers.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::{RANGE_KEYS_MAX, SPACES_MAX, UNDURABLE_BYTES_MAX};
use crate::{
    Direction, Key, KeyRange, KeyValueStore, KvError, KvStatus, Operation, Progress, ProgressWatcher, Scan,
    Sequence, Snapshot, Space, Value, WriteBatch,
};

type Records = BTreeMap<Key, Value>;
type Spaces = BTreeMap<Space, Arc<Records>>;

/// A [`KeyValueStore`] in memory.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    watchers: Mutex<Vec<Arc<dyn ProgressWatcher>>>,
}

#[derive(Default)]
struct State {
    spaces: Spaces,
    progress: Progress,
    undurable_bytes: usize,
    held: bool,
    busy: Option<String>,
    sealed: Option<String>,
    closed: bool,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Batches that are committed from now on are readable, but not durable until [`release`](Self::release).
    pub fn hold(&self) {
        self.state.lock().held = true;
    }

    /// Makes all batches durable that [`hold`](Self::hold) has delayed.
    pub fn release(&self) {
        let mut state = self.state.lock();
        state.held = false;
        state.settle();
        drop(state);
        self.notify_watchers();
    }

    /// Makes the store answer busy with this reason; `None` ends that.
    pub fn set_busy(&self, reason: Option<&str>) {
        self.state.lock().busy = reason.map(str::to_owned);
        self.notify_watchers();
    }

    /// Behaves as after a failed write: the store refuses batches, delayed ones never become durable, reads continue.
    pub fn seal(&self, cause: &str) {
        let mut state = self.state.lock();
        state.sealed = Some(cause.to_owned());
        state.progress.sealed = true;
        drop(state);
        self.notify_watchers();
    }

    fn notify_watchers(&self) {
        let progress = self.progress();
        let watchers = self.watchers.lock().clone();
        watchers.iter().for_each(|watcher| watcher.progress(progress));
    }
}

impl State {
    fn check_writable(&self, batch: &WriteBatch) -> Result<(), KvError> {
        if self.closed {
            return Err(KvError::Closed);
        }
        if let Some(cause) = &self.sealed {
            return Err(KvError::Sealed { cause: cause.clone() });
        }
        if let Some(reason) = &self.busy {
            return Err(KvError::Busy { reason: reason.clone() });
        }
        check_undurable(self.undurable_bytes, batch.bytes())
    }

    fn settle(&mut self) {
        if !self.held && self.sealed.is_none() {
            self.progress.durable = self.progress.committed;
            self.undurable_bytes = 0;
        }
    }
}

/// Refuses a batch that would leave more undurable bytes than allowed, unless there are none yet.
pub(crate) fn check_undurable(undurable_bytes: usize, batch_bytes: usize) -> Result<(), KvError> {
    if undurable_bytes > 0 && undurable_bytes + batch_bytes > UNDURABLE_BYTES_MAX {
        let reason = format!(
            "{undurable_bytes} bytes wait for the disk, {batch_bytes} more would pass the limit of {UNDURABLE_BYTES_MAX}"
        );
        return Err(KvError::Busy { reason });
    }
    Ok(())
}

/// Does the operations on a copy, so that a refused batch leaves nothing. Only the written spaces are copied, and they only
/// while a snapshot shares them.
fn apply(spaces: &mut Spaces, batch: &WriteBatch) -> Result<(), KvError> {
    let mut deleted = 0;
    for (space, operation) in batch.operations() {
        let records = Arc::make_mut(spaces.entry(*space).or_default());
        match operation {
            Operation::Put(key, value) => {
                records.insert(key.clone(), value.clone());
            }
            Operation::Delete(key) => {
                records.remove(key);
            }
            Operation::DeleteIf(key, value) => {
                if records.get(key) == Some(value) {
                    records.remove(key);
                }
            }
            Operation::DeleteRange(range) if range.is_empty() => {}
            Operation::DeleteRange(range) => {
                let keys: Vec<Key> =
                    records.range::<[u8], _>(range.bounds()).map(|(key, _)| key.clone()).collect();
                deleted += keys.len();
                KvError::check_limit("keys of deleted ranges", deleted, RANGE_KEYS_MAX)?;
                keys.iter().for_each(|key| drop(records.remove(key)));
            }
        }
    }
    KvError::check_limit("number of spaces", spaces.len(), SPACES_MAX)
}

impl KeyValueStore for MemoryStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value>, KvError> {
        let state = self.state.lock();
        if state.closed {
            return Err(KvError::Closed);
        }
        Ok(state.spaces.get(&space).and_then(|records| records.get(key)).cloned())
    }

    fn commit(&self, batch: &WriteBatch) -> Result<Sequence, KvError> {
        batch.check()?;
        let mut state = self.state.lock();
        state.check_writable(batch)?;
        let mut spaces = state.spaces.clone();
        apply(&mut spaces, batch)?;
        state.spaces = spaces;
        state.progress.committed += 1;
        state.undurable_bytes += batch.bytes();
        state.settle();
        let sequence = state.progress.committed;
        drop(state);
        self.notify_watchers();
        Ok(sequence)
    }

    fn progress(&self) -> Progress {
        self.state.lock().progress
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.watchers.lock().push(watcher);
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, KvError> {
        let state = self.state.lock();
        if state.closed {
            return Err(KvError::Closed);
        }
        Ok(Box::new(MemorySnapshot(state.spaces.clone())))
    }

    fn status(&self) -> KvStatus {
        let state = self.state.lock();
        KvStatus {
            sealed: state.sealed.clone(),
            busy: state.busy.clone(),
            behind: None,
            disk_bytes: 0,
            memory_bytes: 0,
            undurable_bytes: state.undurable_bytes as u64,
            commits: state.progress.committed,
            syncs: 0,
        }
    }

    fn close(&self) -> Result<(), KvError> {
        let mut state = self.state.lock();
        state.closed = true;
        state.held = false;
        state.settle();
        let outcome = match &state.sealed {
            Some(cause) if state.undurable_bytes > 0 => Err(KvError::Sealed { cause: cause.clone() }),
            _ => Ok(()),
        };
        drop(state);
        self.notify_watchers();
        outcome
    }
}

struct MemorySnapshot(Spaces);

impl Snapshot for MemorySnapshot {
    fn spaces(&self) -> Vec<Space> {
        self.0.keys().copied().collect()
    }

    fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Scan, KvError> {
        let records = self.0.get(&space).filter(|_| !range.is_empty());
        let found: Vec<_> = records
            .map(|records| records.range::<[u8], _>(range.bounds()))
            .into_iter()
            .flatten()
            .map(|(key, value)| Ok((key.clone(), value.clone())))
            .collect();
        Ok(match direction {
            Direction::Ascending => Box::new(found.into_iter()),
            Direction::Descending => Box::new(found.into_iter().rev()),
        })
    }
}
