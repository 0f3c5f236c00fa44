//! Backpressure: a requested flush waits while merges have fallen behind (compaction/pressure.rs).
//!
//! A waiting flush holds no lock that a merge, retention or the end of the store needs, and each of these wakes it. An
//! urgent flush, for a copy of the parts, does not wait for merges, because these may wait for space.

use parking_lot::MutexGuard;

use crate::compaction::overlap_pressure;
use crate::core::{Core, State};

/// The facts that decide whether a flush may begin.
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

/// Waits until a flush is requested and may begin. `None` when the store closes before.
pub(super) fn wait_for_work(core: &Core) -> Option<MutexGuard<'_, State>> {
    let mut guard = core.state.lock();
    // The last moment at which no group was under pressure.
    let mut clear = None;
    loop {
        let now = Moment::of(&guard);
        if !now.open {
            return None;
        }
        if guard.flusher.requested == guard.flusher.completed {
            core.flush_work.wait(&mut guard);
            continue;
        }
        if !core.options.compact || now.urgent > guard.flusher.completed || clear == Some(now) {
            if guard.flusher.backpressure.take().is_none() {
                return Some(guard);
            }
            guard.flusher.refused = false;
            notify_observer(core, &mut guard, None);
            continue;
        }
        let version = guard.version.clone();
        // Not under the lock: this may visit many parts.
        let pressure =
            MutexGuard::unlocked(&mut guard, move || overlap_pressure(&version, &core.options.compaction));
        let Some(pressure) = pressure else {
            clear = Some(now);
            continue;
        };
        if guard.flusher.backpressure.replace(pressure).is_none() {
            let why = guard.backpressure(&core.options.compaction);
            notify_observer(core, &mut guard, why.as_deref());
        }
        if Moment::of(&guard) == now {
            core.flush_work.wait(&mut guard);
        }
    }
}

fn notify_observer(core: &Core, guard: &mut MutexGuard<'_, State>, why: Option<&str>) {
    if let Some(observer) = &core.options.observer {
        MutexGuard::unlocked(guard, || observer.flush_held(why));
    }
}
