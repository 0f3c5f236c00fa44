//! The keeper: the thread that lets fjall write full spaces to files, and that looks whether a busy store has room again.

use std::time::Duration;

use super::core::Core;

/// The time between two looks at a busy store.
const LOOK: Duration = Duration::from_millis(10);

/// Runs until the store is closed or sealed.
pub(super) fn run(core: &Core) {
    while wait(core) {
        let Ok(generation) = core.generation() else { continue };
        // A failed write in the background ends fjall's thread: nothing would make room any more.
        if let Err(failure) = generation.flush_full_spaces().and_then(|()| generation.write_journal()) {
            drop(core.failed(failure));
            continue;
        }
        core.end_refusal();
    }
}

/// Waits for something to do. Returns false when the store has closed.
fn wait(core: &Core) -> bool {
    let mut state = core.state.lock();
    loop {
        if state.closed || state.sealed.is_some() {
            return false;
        }
        if state.suspended.is_some() {
            core.chores.wait(&mut state);
        } else if std::mem::take(&mut state.flush_wanted) {
            return true;
        } else if state.is_busy() {
            return core.chores.wait_for(&mut state, LOOK).timed_out() || !state.closed;
        } else {
            core.chores.wait(&mut state);
        }
    }
}
