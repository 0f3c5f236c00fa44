//! The committer: the one thread that makes batches durable. One sync covers all batches that came during the last one.

use super::core::Core;
use super::descriptors::retry_without_descriptors;
use super::journal::JournalFiles;
use crate::KvError;

/// Runs until the store is closed or sealed. Before it ends it makes all batches durable.
pub(super) fn run(core: &Core, mut journal: JournalFiles) {
    while let Some((sequence, bytes)) = next(core) {
        if let Err(error) = sync(core, &mut journal) {
            core.seal(&error);
            return;
        }
        let mut state = core.state.lock();
        state.progress.durable = sequence;
        state.undurable_bytes -= bytes;
        state.syncs += 1;
        state.is_busy = false;
        drop(state);
        core.notify_watchers();
    }
}

/// Waits for batches that are not durable. Returns the last of them and the bytes of all; `None` when the store has closed.
fn next(core: &Core) -> Option<(u64, usize)> {
    let mut state = core.state.lock();
    loop {
        if state.sealed.is_some() {
            return None;
        }
        if state.progress.durable < state.progress.committed {
            return Some((state.progress.committed, state.undurable_bytes));
        }
        if state.closed {
            return None;
        }
        core.work.wait(&mut state);
    }
}

fn sync(core: &Core, journal: &mut JournalFiles) -> Result<(), KvError> {
    // Under the lock of the journal only a write to the system. The sync continues without it, so commits do not wait for the disk.
    let persist = core.database.persist(fjall::PersistMode::Buffer);
    persist.map_err(|error| core.failure("write the journal of", error))?;
    // Nothing is lost while a new file cannot be opened: the batches wait, and the store is busy when there are too many.
    retry_without_descriptors(core, || journal.follow())
        .and_then(|()| journal.sync())
        .map_err(|error| KvError::io("sync the journal of", &core.directory, error))
}
