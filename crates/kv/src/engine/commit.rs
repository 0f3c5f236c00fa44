//! Commits a batch.

use super::core::Core;
use super::resolve;
use crate::{KvError, Sequence, WriteBatch};

/// See [`crate::KeyValueStore::commit`].
pub(super) fn commit(core: &Core, batch: &WriteBatch) -> Result<Sequence, KvError> {
    batch.check()?;
    let _order = core.order.lock();
    core.check_writable(batch)?;
    let generation = core.generation()?;
    let changes =
        resolve::resolve(&generation, &core.directory, batch).map_err(|error| core.refused(error, false))?;
    if let Some(reason) = generation.backlog(resolve::spaces_of(&changes)) {
        return Err(core.refused(KvError::Busy { reason }, true));
    }
    generation.write(&changes).map_err(|failure| core.failed(failure))?;
    let bytes = resolve::bytes_of(&changes).max(batch.bytes());
    let is_nearly_full = generation.is_nearly_full(resolve::spaces_of(&changes));
    let mut state = core.state.lock();
    if is_nearly_full && !state.flush_wanted {
        state.flush_wanted = true;
        core.chores.notify_one();
    }
    core.work.notify_one();
    Ok(state.committed(changes, bytes))
}
