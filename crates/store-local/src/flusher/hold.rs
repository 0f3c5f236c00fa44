//! When a flush begins: once it is asked for, and not while merges have fallen behind (compaction/crowd.rs).
//!
//! A flush that waits holds nothing that a merge, a drop of old rows or the end of the store waits for; each of these
//! wakes it. Whoever flushes to make a copy of the parts does not wait for merges, because these may wait for space.

use parking_lot::MutexGuard;

use crate::compaction::crowd;
use crate::core::{Core, State};

/// All that decides whether a flush may begin.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Moment {
    version: u64,
    damaged: u64,
    urgent: u64,
    open: bool,
}

impl Moment {
    fn of(state: &State) -> Self {
        Self {
            version: state.version.number(),
            damaged: state.compactor.damaged,
            urgent: state.flusher.urgent,
            open: state.is_open(),
        }
    }
}

/// Waits until a flush is asked for and may begin. `None` when the store ends before.
pub(super) fn wait_for_work(core: &Core) -> Option<MutexGuard<'_, State>> {
    let mut guard = core.state.lock();
    // When there was last found to be nothing to wait for.
    let mut clear = None;
    loop {
        let now = Moment::of(&guard);
        if !now.open {
            return None;
        }
        if guard.flusher.asked == guard.flusher.done {
            core.flush_work.wait(&mut guard);
            continue;
        }
        if !core.options.compact || now.urgent > guard.flusher.done || clear == Some(now) {
            if guard.flusher.held.take().is_none() {
                return Some(guard);
            }
            guard.flusher.refused = false;
            tell(core, &mut guard, None);
            continue;
        }
        let version = guard.version.clone();
        // Not under the lock: this may look at many parts.
        let crowd = MutexGuard::unlocked(&mut guard, move || crowd(&version, &core.options.compaction));
        let Some(crowd) = crowd else {
            clear = Some(now);
            continue;
        };
        if guard.flusher.held.replace(crowd).is_none() {
            let why = guard.held(&core.options.compaction);
            tell(core, &mut guard, why.as_deref());
        }
        if Moment::of(&guard) == now {
            core.flush_work.wait(&mut guard);
        }
    }
}

fn tell(core: &Core, guard: &mut MutexGuard<'_, State>, why: Option<&str>) {
    if let Some(observer) = &core.options.observer {
        MutexGuard::unlocked(guard, || observer.flush_held(why));
    }
}
