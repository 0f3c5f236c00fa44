//! The committer: the one thread that makes batches durable. One sync covers all batches that came during the last one.
//! It also opens the database again after a lack of a resource.

use super::core::Core;
use super::descriptors::retry_without_descriptors;
use super::failure::Failure;
use super::journal::JournalFiles;
use super::recovery::Recovery;
use crate::{KvError, Sequence};

/// What the committer does next.
enum Work {
    /// Make the batches up to this one durable.
    Sync(Sequence),
    /// Open the database again.
    Recover,
}

/// Runs until the store is closed or sealed. Before it ends it makes all batches durable.
pub(super) fn run(core: &Core, mut journal: JournalFiles) {
    let mut recovery = Recovery::default();
    while let Some(work) = next(core) {
        match work {
            Work::Sync(sequence) => match sync(core, &mut journal) {
                Ok(()) => {
                    core.state.lock().synced(sequence);
                    core.notify_watchers();
                    core.end_refusal();
                }
                Err(failure) => drop(core.failed(failure)),
            },
            Work::Recover => {
                if let Err(error) = recovery.recover(core, &mut journal) {
                    core.seal(&error);
                }
            }
        }
    }
}

/// Waits for work; `None` when the store has closed or is sealed.
fn next(core: &Core) -> Option<Work> {
    let mut state = core.state.lock();
    loop {
        if state.sealed.is_some() {
            return None;
        }
        let is_undurable = state.progress.durable < state.progress.committed;
        if state.suspended.is_some() {
            // A store that closes and has nothing to lose need not wait for room.
            return (is_undurable || !state.closed).then_some(Work::Recover);
        }
        if is_undurable {
            return Some(Work::Sync(state.progress.committed));
        }
        if state.closed {
            return None;
        }
        core.work.wait(&mut state);
    }
}

fn sync(core: &Core, journal: &mut JournalFiles) -> Result<(), Failure> {
    // Under the lock of the journal only a write to the system. The sync continues without it, so commits do not wait for the disk.
    core.generation().map_err(Failure::Lasting)?.write_journal()?;
    // Nothing is lost while a new file cannot be opened: the batches wait, and the store is busy when there are too many.
    retry_without_descriptors(core, || journal.follow())
        .and_then(|()| journal.sync())
        // Also a lack of space: after a failed sync nothing is known of what is on the disk.
        .map_err(|error| Failure::Lasting(KvError::io("sync the journal of", &core.directory, error)))
}
