//! Reads made of equal pieces, such as the histories of many devices: made on as many threads as have nothing else to do.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::sync::OwnedSemaphorePermit;

use super::error::ApiError;

/// The thread that has a turn of a lane and further ones for which there were free turns.
#[derive(Debug)]
pub(crate) struct Crew {
    /// One for each further thread, given back with the crew.
    turns: Vec<OwnedSemaphorePermit>,
}

impl Crew {
    pub(super) fn new(turns: Vec<OwnedSemaphorePermit>) -> Self {
        Self { turns }
    }

    /// The one thread that asks.
    pub(crate) const fn alone() -> Self {
        Self { turns: Vec::new() }
    }

    /// How many work.
    pub(crate) fn threads(&self) -> usize {
        1 + self.turns.len()
    }

    /// `make(0)` to `make(count - 1)` in their order. After an error no further pieces are begun; of several errors that of
    /// the first piece is returned.
    pub(crate) fn make<T: Send>(
        &self,
        count: usize,
        make: impl Fn(usize) -> Result<T, ApiError> + Sync,
    ) -> Result<Vec<T>, ApiError> {
        if self.turns.is_empty() || count < 2 {
            return (0..count).map(make).collect();
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= count {
                    return made;
                }
                let result = make(piece);
                if result.is_err() {
                    next.store(count, Ordering::Relaxed);
                }
                made.push((piece, result));
            }
        };
        let mut made = thread::scope(|scope| {
            let spawn = |_| thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, work).ok();
            // Without a further thread this one does it all.
            let others: Vec<_> = (1..self.threads().min(count)).filter_map(spawn).collect();
            let mut made = work();
            for other in others {
                made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            made
        });
        made.sort_unstable_by_key(|(piece, _)| *piece);
        made.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use tokio::sync::Semaphore;

    use super::*;

    fn crew(threads: usize) -> Crew {
        let turns = Arc::new(Semaphore::new(threads));
        let turn = |_| turns.clone().try_acquire_owned().unwrap();
        Crew::new((1..threads).map(turn).collect())
    }

    #[test]
    fn pieces_come_in_their_order_whoever_makes_them() {
        for threads in 1..4 {
            for count in [0, 1, 2, 3, 100] {
                let made = crew(threads).make(count, |piece| Ok(10 * piece)).unwrap();
                assert_eq!(made, (0..count).map(|piece| 10 * piece).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn all_threads_work() {
        // Both pieces wait for the other one to be begun.
        let barrier = Barrier::new(2);
        crew(2).make(2, |_| Ok(barrier.wait().is_leader())).unwrap();
    }

    #[test]
    fn the_first_error_is_returned_and_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let failed = crew(2).make(1_000_000, |piece| {
            begun.fetch_add(1, Ordering::Relaxed);
            if piece >= 3 { Err(ApiError::argument(format!("piece {piece}"))) } else { Ok(piece) }
        });
        assert_eq!(failed.unwrap_err().message, "piece 3");
        assert!(begun.load(Ordering::Relaxed) < 1_000, "{begun:?}");
    }
}
