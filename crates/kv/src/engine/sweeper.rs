//! The sweeper: the thread that deletes records that have expired. It reads the spaces that have an [`Expiry`] in slices, with pauses.
//!
//! The engine's files could leave records out while they are merged. That is not used: fjall's filter of a merge does not see the number
//! of a write; a merge that leaves out the newest records lowers the highest number in the tables, by which fjall decides which journal
//! files it deletes and replays; and tables that nothing is merged with would keep their records.

use std::time::{Duration, UNIX_EPOCH};

use super::commit::commit;
use super::core::Core;
use super::snapshot::EngineSnapshot;
use crate::expiry::{Expiry, SweepBudget, Swept, slice};
use crate::{KvError, Space};

/// What is read at once, and the pause after it: at most ten such slices in a second.
const SLICE: SweepBudget = SweepBudget { records: 4_000, bytes: 1 << 20 };
const PAUSE: Duration = Duration::from_millis(100);

/// The pause while the store is busy.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// The pause between the end of all spaces and the next beginning.
const PASS_PAUSE: Duration = Duration::from_secs(600);

/// A record stays for this time after it has expired, so that a clock that was set forward for a moment deletes nothing.
const MARGIN_US: i64 = 3_600 * 1_000_000;

/// Runs until the store is closed or sealed.
pub(super) fn run(core: &Core) {
    loop {
        core.sweeps.lock().added = false;
        let next = core.sweeps.lock().next();
        let pause = match next {
            Some((space, expiry, after)) => match sweep(core, space, &*expiry, after.as_deref()) {
                Ok(swept) => {
                    core.sweeps.lock().place = Some((space, swept.last));
                    PAUSE
                }
                Err(KvError::Busy { .. }) => BUSY_PAUSE,
                Err(KvError::Closed | KvError::Sealed { .. }) => return,
                Err(error) => {
                    // The check of the files tells what is wrong; the other spaces are read.
                    tracing::warn!(%error, %space, "cannot reclaim the records that have expired");
                    core.sweeps.lock().place = Some((space, None));
                    BUSY_PAUSE
                }
            },
            None => {
                core.sweeps.lock().place = None;
                PASS_PAUSE
            }
        };
        if !wait(core, pause) {
            return;
        }
    }
}

/// One slice.
fn sweep(core: &Core, space: Space, expiry: &dyn Expiry, after: Option<&[u8]>) -> Result<Swept, KvError> {
    let generation = core.generation()?;
    let snapshot = EngineSnapshot::new(&generation, &core.readers, &core.directory);
    drop(generation);
    let (batch, mut swept) = slice(&snapshot, space, expiry, now_us() - MARGIN_US, after, SLICE)?;
    drop(snapshot);
    if !batch.is_empty() {
        swept.sequence = Some(commit(core, &batch)?);
    }
    Ok(swept)
}

fn now_us() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Pauses. Returns false when the store has closed or is sealed.
fn wait(core: &Core, pause: Duration) -> bool {
    let mut state = core.state.lock();
    let ends = |core: &Core| core.sweeps.lock().added;
    if !state.closed && state.sealed.is_none() && !ends(core) {
        core.sweeping.wait_for(&mut state, pause);
    }
    !state.closed && state.sealed.is_none()
}
