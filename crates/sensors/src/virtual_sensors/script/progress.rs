//! The operations of a script, and its end in the middle when the server stops.
//!
//! All scripts share one interpreter, so what belongs to a run is kept for its thread.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rhai::Dynamic;

/// Operations between two looks at whether the server stops.
const LOOK_OPERATIONS: u64 = 1_024;

thread_local! {
    /// Operations of the run of this thread.
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// What ends the run of this thread.
    static END: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs a script. Returns what it gives, and its operations.
pub(super) fn counted<T>(end: &Arc<AtomicBool>, run: impl FnOnce() -> T) -> (T, u64) {
    OPERATIONS.set(0);
    END.set(Some(Arc::clone(end)));
    let given = run();
    END.set(None);
    (given, OPERATIONS.get())
}

/// The interpreter calls it with each operation. A value ends the run.
pub(super) fn look(operations: u64) -> Option<Dynamic> {
    OPERATIONS.set(operations);
    let ends = operations.is_multiple_of(LOOK_OPERATIONS)
        && END.with_borrow(|end| end.as_ref().is_some_and(|end| end.load(Ordering::Relaxed)));
    ends.then_some(Dynamic::UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_and_a_run_ends_when_the_server_stops() {
        let end = Arc::new(AtomicBool::new(false));
        let mut engine = rhai::Engine::new_raw();
        engine.on_progress(look);
        let run = || engine.run("let i = 0; while i < 2000 { i += 1; }");
        let (given, operations) = counted(&end, run);
        given.unwrap();
        assert!((2_000..20_000).contains(&operations), "{operations}");
        end.store(true, Ordering::Relaxed);
        let (given, ended) = counted(&end, run);
        assert!(given.is_err() && ended <= LOOK_OPERATIONS, "{given:?} {ended}");
    }
}
