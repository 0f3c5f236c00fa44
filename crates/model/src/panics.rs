//! What a panic ends.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::thread::panicking;

thread_local! {
    /// Guards that live on this thread.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    /// Contained work that this thread is amid, one in the other.
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// What a panic ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Everything: it is amid a [`PanicEndsProcess`].
    Process,
    /// Some work: it is amid [`contain_panic`], and whoever called that goes on.
    Work,
    /// The thread, or the task that it is amid.
    Thread,
}

/// What a panic of the calling thread would end.
pub fn panic_ends() -> Ends {
    match (GUARDS.get(), CONTAINED.get()) {
        (0, 0) => Ends::Thread,
        (0, _) => Ends::Work,
        _ => Ends::Process,
    }
}

/// A panic on this thread while the value lives ends the process (SIGABRT), where it would otherwise end one thread.
///
/// For threads that the others rely on, and for changes of what threads share: a server whose acknowledgements never
/// leave, or that serves half a change, is worse than one that starts anew and reads from the disk what it has
/// acknowledged. Work for one client alone does not need it: its panic ends that client's answer.
///
/// A panic hook that asks [`panic_ends`] can end the process before anything is unwound, and say so; without
/// one it ends when the guard is dropped.
#[derive(Debug)]
#[must_use = "it guards as long as it lives"]
pub struct PanicEndsProcess {
    /// Begun while a panic unwinds, which is not for it to judge.
    amid_panic: bool,
    /// It counts on its thread, so it stays there.
    _stays: PhantomData<*const ()>,
}

impl PanicEndsProcess {
    /// Guards until it is dropped.
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

/// Runs work whose panic ends nothing but the work, whatever guards it is within: it changes nothing that others see.
///
/// # Errors
/// What the panic said.
pub fn contain_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let guards = GUARDS.replace(0);
    CONTAINED.set(CONTAINED.get() + 1);
    // Whoever calls this says that nothing torn is seen.
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
    fn a_contained_panic_says_what_it_said() {
        assert_eq!(contain_panic(|| 1), Ok(1));
        assert_eq!(contain_panic(|| panic!("{} of them", 2)), Err::<(), _>("2 of them".to_owned()));
        let wordless = contain_panic(|| std::panic::panic_any(3));
        assert_eq!(wordless, Err::<(), _>("a panic without words".to_owned()));
    }
}
