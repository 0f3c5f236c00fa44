//! A lack of file descriptors or memory while a file is opened: the committer waits for it to end.

use std::io;
use std::time::Duration;

use model::resource_errors::{is_out_of_descriptors, is_transient};

use super::core::Core;

/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// Attempts after the store was told to close: it then gives up, because nothing may be left that frees descriptors.
const ATTEMPTS_WHEN_CLOSED: u32 = 50;

/// The part of a store that waits.
pub(super) trait Waiting {
    /// Whether the store was told to close.
    fn is_closed(&self) -> bool;

    /// Sets why the store waits; `None` when it continues.
    fn set_lack(&self, reason: Option<String>);

    /// Pauses before the next attempt.
    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}

impl Waiting for Core {
    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    fn set_lack(&self, reason: Option<String>) {
        if let Some(reason) = &reason {
            tracing::warn!(%reason, "the key-value store waits");
        }
        self.state.lock().lack = reason;
    }
}

/// Repeats a step that only opens files until the system has descriptors and memory for it. Other errors end it.
pub(super) fn retry_without_descriptors(
    store: &impl Waiting,
    mut step: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let (mut waits, mut attempts_when_closed) = (false, 0);
    loop {
        let error = match step() {
            Err(error) if is_transient(&error) => error,
            outcome => {
                if waits {
                    store.set_lack(None);
                }
                return outcome;
            }
        };
        if store.is_closed() {
            attempts_when_closed += 1;
            if attempts_when_closed == ATTEMPTS_WHEN_CLOSED {
                return Err(error);
            }
        }
        if !waits {
            waits = true;
            store.set_lack(Some(match is_out_of_descriptors(&error) {
                true => format!(
                    "no file descriptors are left: {error}; writing continues when connections close, or raise LimitNOFILE"
                ),
                false => format!("cannot open the journal: {error}; writing continues when this has passed"),
            }));
        }
        store.pause();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[derive(Default)]
    struct Store {
        closed: bool,
        lacks: RefCell<Vec<bool>>,
        pauses: Cell<u32>,
    }

    impl Waiting for Store {
        fn is_closed(&self) -> bool {
            self.closed
        }

        fn set_lack(&self, reason: Option<String>) {
            self.lacks.borrow_mut().push(reason.is_some());
        }

        fn pause(&self) {
            self.pauses.set(self.pauses.get() + 1);
        }
    }

    fn failing(errors: Vec<i32>) -> impl FnMut() -> io::Result<()> {
        let mut errors = errors.into_iter();
        move || errors.next().map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
    }

    #[test]
    fn a_lack_of_descriptors_is_waited_for_and_reported_once() {
        let store = Store::default();
        retry_without_descriptors(&store, failing(vec![libc::EMFILE, libc::ENFILE, libc::EMFILE])).unwrap();
        assert_eq!((store.lacks.into_inner(), store.pauses.get()), (vec![true, false], 3));
    }

    #[test]
    fn other_errors_end_the_step_at_once() {
        let store = Store::default();
        let failed = retry_without_descriptors(&store, failing(vec![libc::EMFILE, libc::EIO])).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(libc::EIO));
        assert_eq!((store.lacks.into_inner(), store.pauses.get()), (vec![true, false], 1));
    }

    #[test]
    fn a_store_that_closes_gives_up() {
        let store = Store { closed: true, ..Store::default() };
        let failed = retry_without_descriptors(&store, failing(vec![libc::EMFILE; 1_000])).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(libc::EMFILE));
        assert_eq!(store.pauses.get(), ATTEMPTS_WHEN_CLOSED - 1);
    }
}
