//! The policy of panics: whether a panic ends the process, some work, or its thread.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::thread::panicking;

thread_local! {
    /// Number of [`PanicEndsProcess`] guards on this thread.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    /// Nesting depth of [`contain_panic`] on this thread.
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// The consequence of a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The panic ends the process: the thread has a [`PanicEndsProcess`].
    Process,
    /// The panic ends the work of a [`contain_panic`], whose caller continues.
    Work,
    /// The panic ends the thread or the task.
    Thread,
}

/// The consequence that a panic of the calling thread would have.
pub fn panic_ends() -> Ends {
    match (GUARDS.get(), CONTAINED.get()) {
        (0, 0) => Ends::Thread,
        (0, _) => Ends::Work,
        _ => Ends::Process,
    }
}

/// While this value lives, a panic on its thread ends the process (SIGABRT) instead of the thread.
///
/// It guards threads on which other threads rely, and changes of shared data. A server that sends no acknowledgements, or that
/// serves a half-done change, is worse than one that restarts and reads the acknowledged data from the disk. Work for a single
/// client does not need the guard: its panic ends the answer to that client.
///
/// A panic hook that calls [`panic_ends`] can log the panic and end the process before the stack is unwound. Without such a
/// hook the process ends when the guard is dropped.
#[derive(Debug)]
#[must_use = "it guards as long as it lives"]
pub struct PanicEndsProcess {
    /// The guard was created while a panic unwinds. It ignores that panic.
    amid_panic: bool,
    /// Not `Send`: the guard is counted on its thread.
    _stays: PhantomData<*const ()>,
}

impl PanicEndsProcess {
    /// Starts to guard, until the value is dropped.
    pub fn begin() -> Self {
        GUARDS.set(GUARDS.get() + 1);
        Self { amid_panic: panicking(), _stays: PhantomData }
    }
}

impl Drop for PanicEndsProcess {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get() - 1);
        if panicking() && !self.amid_panic {
            abort();
        }
    }
}

/// Runs work whose panic ends only the work, also within guards. The work must not change shared data.
///
/// # Errors
/// The message of the panic.
pub fn contain_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let guards = GUARDS.replace(0);
    CONTAINED.set(CONTAINED.get() + 1);
    // The caller promises that the work changes no shared data.
    let done = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(CONTAINED.get() - 1);
    GUARDS.set(guards);
    done.map_err(|panic| text_of(&*panic).to_owned())
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_and_contained_work_are_counted_on_each_thread() {
        assert_eq!(panic_ends(), Ends::Thread);
        let outer = PanicEndsProcess::begin();
        drop(PanicEndsProcess::begin());
        assert_eq!(panic_ends(), Ends::Process);
        std::thread::spawn(|| assert_eq!(panic_ends(), Ends::Thread)).join().unwrap();
        let contained = contain_panic(|| {
            let outside = panic_ends();
            let _guard = PanicEndsProcess::begin();
            (outside, panic_ends())
        });
        assert_eq!(contained, Ok((Ends::Work, Ends::Process)));
        assert_eq!(panic_ends(), Ends::Process);
        drop(outer);
        assert_eq!(contain_panic(|| -> () { panic!("once more") }), Err("once more".to_owned()));
        assert_eq!(panic_ends(), Ends::Thread);
    }

    #[test]
    fn a_contained_panic_keeps_its_message() {
        assert_eq!(contain_panic(|| 1), Ok(1));
        assert_eq!(contain_panic(|| panic!("{} of them", 2)), Err::<(), _>("2 of them".to_owned()));
        let wordless = contain_panic(|| std::panic::panic_any(3));
        assert_eq!(wordless, Err::<(), _>("a panic without words".to_owned()));
    }
}
