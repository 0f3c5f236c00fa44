//! Runs blocking work outside of the event loop: a bounded number of jobs at once, and a bounded number that wait.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use model::limits::{MEMORY_SAMPLE_INTERVAL, MEMORY_WAIT_MAX};
use model::{MemoryPressure, MemoryShortage};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, spawn_blocking};

use super::worker_set::WorkerSet;

/// A pool for one kind of blocking work, such as reads of the store or password checks.
#[derive(Debug)]
pub(crate) struct BlockingPool {
    /// The kind of work, for error texts.
    what: &'static str,
    /// A permit for each job that may run.
    permits: Arc<Semaphore>,
    /// Jobs that wait for a permit.
    waiting: AtomicUsize,
    waiting_max: usize,
    /// Number of processors.
    threads_max: usize,
}

impl BlockingPool {
    pub(crate) fn new(what: &'static str, at_once: usize, waiting_max: usize) -> Self {
        let threads_max = std::thread::available_parallelism().map_or(1, NonZero::get);
        let permits = Arc::new(Semaphore::new(at_once));
        Self { what, permits, waiting: AtomicUsize::new(0), waiting_max, threads_max }
    }

    /// Extra threads for a running job that can be split: as many as there are free permits, at most one per processor.
    pub(crate) fn worker_set(&self) -> WorkerSet {
        let permit = || Arc::clone(&self.permits).try_acquire_owned().ok();
        WorkerSet::new(std::iter::from_fn(permit).take(self.threads_max - 1).collect())
    }

    /// Waits for a permit and runs `work`.
    ///
    /// # Errors
    /// Too many jobs wait already, or `work` panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let permit = self.permit().await?;
        run_with(permit, work).await
    }

    /// Like [`run`](Self::run), for work that takes many bytes of memory: it waits until the process has them, for a while.
    ///
    /// # Errors
    /// The same, and a lack of memory.
    pub(crate) async fn run_large<T: Send + 'static>(
        &self,
        pressure: &Arc<MemoryPressure>,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let permit = self.permit().await?;
        let began = Instant::now();
        let memory = loop {
            match pressure.reserve(bytes) {
                Err(shortage) if began.elapsed() >= MEMORY_WAIT_MAX => {
                    return Err(PoolError::Memory(shortage));
                }
                // Each sample of the memory may find more room.
                Err(_) => tokio::time::sleep(MEMORY_SAMPLE_INTERVAL).await,
                Ok(memory) => break memory,
            }
        };
        let work = move || {
            let _memory = memory;
            work()
        };
        run_with(permit, work).await
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, PoolError> {
        let _slot = self.queue_up()?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        Ok(permit.expect("BUG: nobody closes the semaphore of a pool"))
    }

    fn queue_up(&self) -> Result<QueueSlot<'_>, PoolError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let slot = QueueSlot(&self.waiting);
        if waiting >= self.waiting_max {
            return Err(PoolError::Full { what: self.what, waiting, limit: self.waiting_max });
        }
        Ok(slot)
    }
}

/// Runs `work` with its permit.
async fn run_with<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PoolError> {
    let work = move || {
        // The permit ends with the work, even if the request was cancelled.
        let _permit = permit;
        work()
    };
    let done = match Handle::current().runtime_flavor() {
        // This thread moves its other tasks to another thread and does the work itself: two wake-ups would take
        // longer than most reads.
        RuntimeFlavor::MultiThread => catch_unwind(AssertUnwindSafe(|| block_in_place(work))).ok(),
        _ => spawn_blocking(work).await.ok(),
    };
    done.ok_or(PoolError::Panicked)
}

/// Counts a waiting job, until this is dropped.
struct QueueSlot<'a>(&'a AtomicUsize);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job that the pool did not run, or that panicked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PoolError {
    /// Too many jobs wait.
    #[error("{waiting} {what} wait for their turn, the limit is {limit}; try again in a second")]
    Full {
        /// The kind of work.
        what: &'static str,
        /// Jobs that wait.
        waiting: usize,
        limit: usize,
    },
    /// The job takes more memory than the process has.
    #[error(transparent)]
    Memory(MemoryShortage),
    /// The job panicked.
    #[error("the server failed at this request; its log says why")]
    Panicked,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use model::limits::MEMORY_SMALL_WORK_BYTES;

    use super::*;

    /// Smaller jobs need not wait for memory.
    const LARGE: u64 = MEMORY_SMALL_WORK_BYTES + 1;

    #[tokio::test]
    async fn a_job_that_finds_the_queue_full_is_refused_and_the_others_run() {
        let pool = Arc::new(BlockingPool::new("reads", 1, 1));
        let (release, released) = mpsc::channel::<()>();
        let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                pool.run(move || {
                    started.send(()).unwrap();
                    released.recv().unwrap();
                    1
                })
                .await
            }
        });
        running.recv().await.unwrap();
        let second = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(|| 2).await }
        });
        while pool.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = pool.run(|| 3).await.unwrap_err();
        assert_eq!(refused, PoolError::Full { what: "reads", waiting: 1, limit: 1 });
        assert!(refused.to_string().contains("the limit is 1"), "{refused}");
        release.send(()).unwrap();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(1), Ok(2)));
        assert_eq!(pool.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_worker_set_has_the_free_permits() {
        let pool = BlockingPool { threads_max: 4, ..BlockingPool::new("reads", 3, 1) };
        let workers = pool.worker_set();
        assert_eq!(workers.threads(), 4);
        assert_eq!(pool.worker_set().threads(), 1, "none is left");
        drop(workers);
        assert_eq!(pool.run(|| 1).await, Ok(1), "they are given back");
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_frees_the_permit() {
        panics().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_panic_on_the_event_loop_is_an_error_and_frees_the_permit() {
        panics().await;
    }

    #[tokio::test]
    async fn a_large_job_waits_for_memory() {
        let (pool, pressure) = (BlockingPool::new("reads", 1, 1), Arc::<MemoryPressure>::default());
        assert_eq!(pool.run_large(&pressure, LARGE, || 1).await, Ok(1), "nothing is known about the memory");
        pressure.report(900, 1_000);
        let mut waits = std::pin::pin!(pool.run_large(&pressure, LARGE, || 2));
        assert!(tokio::time::timeout(2 * MEMORY_SAMPLE_INTERVAL, &mut waits).await.is_err());
        pressure.report(0, 1_000);
        assert_eq!(waits.await, Ok(2));
        assert_eq!((pool.run(|| 3).await, pressure.reserved()), (Ok(3), 0), "all is given back");
    }

    async fn panics() {
        let pool = BlockingPool::new("reads", 1, 1);
        let failed = pool.run(|| -> u8 { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(failed, PoolError::Panicked);
        assert_eq!(pool.run(|| 4).await, Ok(4));
    }
}
