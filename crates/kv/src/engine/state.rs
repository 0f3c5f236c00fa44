//! The state of a store: what is committed, what is durable, and why writes are refused.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

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
    busy: Option<String>,
    /// Since when batches have been refused only because the store is behind with its files.
    behind_since: Option<Instant>,
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

    /// Notes why batches are refused. `is_behind` says that only the store's own work is the cause.
    pub(super) fn set_busy(&mut self, reason: String, is_behind: bool) {
        self.busy = Some(reason);
        self.behind_since = is_behind.then(|| self.behind_since.unwrap_or_else(Instant::now));
    }

    /// Notes that the store has room.
    pub(super) fn end_busy(&mut self) {
        self.busy = None;
        self.behind_since = None;
    }

    /// Whether batches were refused since the store had room last.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// For how long batches have been refused only because the store is behind.
    pub(super) fn behind(&self) -> Option<Duration> {
        let waits_for_system = self.lack.is_some() || self.suspended.is_some();
        self.behind_since.filter(|_| !waits_for_system).map(|since| since.elapsed())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_has_an_age_and_a_lack_has_none() {
        let mut state = State::default();
        assert_eq!((state.is_busy(), state.behind()), (false, None));
        state.set_busy("behind".to_owned(), true);
        let since = state.behind_since.unwrap();
        state.set_busy("still behind".to_owned(), true);
        assert_eq!(state.behind_since, Some(since), "another refusal does not begin it again");
        assert!(state.behind().is_some());
        state.set_busy("no space".to_owned(), false);
        assert_eq!(state.behind(), None);
        state.set_busy("behind again".to_owned(), true);
        assert!(state.behind_since.unwrap() >= since);
        state.lack = Some("no descriptors".to_owned());
        assert_eq!(state.behind(), None);
        assert_eq!(state.reason_to_wait().unwrap(), "no descriptors");
        state.lack = None;
        state.end_busy();
        assert_eq!((state.is_busy(), state.behind(), state.reason_to_wait()), (false, None, None));
    }
}
