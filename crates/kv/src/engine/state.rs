//! The state of a store: what is committed, what is durable, and why writes are refused.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use super::generation::Change;
use crate::{KvError, Progress, Sequence};

#[derive(Default)]
pub(super) struct State {
    pub(super) progress: Progress,
    pub(super) undurable_bytes: usize,
    pub(super) syncs: u64,
    pub(super) sealed: Option<String>,
    /// Why the database must be opened again; `None` while it works.
    pub(super) suspended: Option<Suspension>,
    /// Why a batch was refused since the store had room last: the watchers hear when it has room again.
    pub(super) busy: Option<String>,
    /// Why the committer waits for file descriptors; `None` when it does not.
    pub(super) lack: Option<String>,
    /// The effects of all batches that are not durable, in their order.
    kept: VecDeque<Kept>,
    /// A space has many bytes in memory.
    pub(super) flush_wanted: bool,
    pub(super) closed: bool,
}

/// The database must be opened again.
pub(super) struct Suspension {
    pub(super) reason: String,
    /// Whether the system has told that it lacks a resource.
    pub(super) is_lack: bool,
}

/// A batch that is not durable.
struct Kept {
    sequence: Sequence,
    bytes: usize,
    changes: Vec<Change>,
}

impl State {
    /// Why writes must wait at present; `None` when they do not.
    pub(super) fn reason_to_wait(&self) -> Option<String> {
        let suspended = self.suspended.as_ref().map(|suspension| &suspension.reason);
        self.lack.as_ref().or(suspended).or(self.busy.as_ref()).cloned()
    }

    /// Adds a batch that can be read and is not durable.
    pub(super) fn committed(&mut self, changes: Vec<Change>, bytes: usize) -> Sequence {
        self.progress.committed += 1;
        self.undurable_bytes += bytes;
        self.kept.push_back(Kept { sequence: self.progress.committed, bytes, changes });
        self.progress.committed
    }

    /// Notes that all batches up to a sequence are durable.
    pub(super) fn synced(&mut self, sequence: Sequence) {
        self.progress.durable = sequence;
        self.syncs += 1;
        while let Some(kept) = self.kept.pop_front_if(|kept| kept.sequence <= sequence) {
            self.undurable_bytes -= kept.bytes;
        }
    }

    /// The effect of all batches that are not durable, as one: the last write of each key.
    pub(super) fn kept(&self) -> Vec<Change> {
        let mut merged = BTreeMap::new();
        for (space, key, value) in self.kept.iter().flat_map(|kept| &kept.changes) {
            merged.insert((*space, key.clone()), value.clone());
        }
        merged.into_iter().map(|((space, key), value)| (space, key, value)).collect()
    }
}

impl Suspension {
    pub(super) fn of_lack(error: &KvError) -> Self {
        let reason = match error {
            KvError::Busy { reason } => reason.clone(),
            error => format!("{error}; writing goes on when this has passed"),
        };
        Self { reason, is_lack: true }
    }

    pub(super) fn of_background(directory: &Path) -> Self {
        let directory = directory.display();
        let reason = format!(
            "a write of memory to files or a merge has failed in {directory}; the database is opened again"
        );
        Self { reason, is_lack: false }
    }

    pub(super) fn busy(&self) -> KvError {
        KvError::Busy { reason: self.reason.clone() }
    }
}
