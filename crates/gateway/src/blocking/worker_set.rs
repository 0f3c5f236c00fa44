//! Splits a job into equal pieces, such as the histories of many devices, and runs them on several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::sync::OwnedSemaphorePermit;

/// Values for which an extra thread is started.
const VALUES_PER_THREAD_MIN: usize = 8 * 1024;

/// The threads of one job: the thread of the job itself, and extra threads for which the pool had free permits.
#[derive(Debug)]
pub(crate) struct WorkerSet {
    /// One for each extra thread, until the set is dropped.
    permits: Vec<OwnedSemaphorePermit>,
}

impl WorkerSet {
    pub(super) fn new(permits: Vec<OwnedSemaphorePermit>) -> Self {
        Self { permits }
    }

    /// Only the thread of the job itself.
    pub(crate) const fn single() -> Self {
        Self { permits: Vec::new() }
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        1 + self.permits.len()
    }

    /// Number of threads that are worth it for `values` values: starting a thread takes about as long as writing a thousand.
    pub(crate) fn threads_for(&self, values: usize) -> usize {
        self.threads().min(values / VALUES_PER_THREAD_MIN).max(1)
    }

    /// The results of `piece(0)` to `piece(count - 1)` in their order. After an error it starts no further pieces. Of several
    /// errors it returns the one of the first piece.
    pub(crate) fn run<T: Send, E: Send>(
        &self,
        count: usize,
        piece: impl Fn(usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        if self.permits.is_empty() || count < 2 {
            return (0..count).map(piece).collect();
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return done;
                }
                let result = piece(number);
                if result.is_err() {
                    next.store(count, Ordering::Relaxed);
                }
                done.push((number, result));
            }
        };
        let mut done = thread::scope(|scope| {
            let spawn = |_| thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, work).ok();
            // If no extra thread starts, this one does all pieces.
            let others: Vec<_> = (1..self.threads().min(count)).filter_map(spawn).collect();
            let mut done = work();
            for other in others {
                done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            done
        });
        done.sort_unstable_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use tokio::sync::Semaphore;

    use super::*;

    fn workers(threads: usize) -> WorkerSet {
        let permits = Arc::new(Semaphore::new(threads));
        let permit = |_| permits.clone().try_acquire_owned().unwrap();
        WorkerSet::new((1..threads).map(permit).collect())
    }

    #[test]
    fn results_are_in_the_order_of_the_pieces() {
        for threads in 1..4 {
            for count in [0, 1, 2, 3, 100] {
                let done = workers(threads).run(count, |piece| Ok::<_, ()>(10 * piece)).unwrap();
                assert_eq!(done, (0..count).map(|piece| 10 * piece).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn all_threads_work() {
        // Each piece waits until the other one has begun.
        let barrier = Barrier::new(2);
        workers(2).run(2, |_| Ok::<_, ()>(barrier.wait().is_leader())).unwrap();
    }

    #[test]
    fn the_first_error_is_returned_and_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let failed = workers(2).run(1_000_000, |piece| {
            begun.fetch_add(1, Ordering::Relaxed);
            if piece >= 3 { Err(format!("piece {piece}")) } else { Ok(piece) }
        });
        assert_eq!(failed.unwrap_err(), "piece 3");
        assert!(begun.load(Ordering::Relaxed) < 1_000, "{begun:?}");
    }
}
