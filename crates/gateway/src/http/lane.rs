//! Blocking work, a bounded number of pieces at a time with a bounded number waiting.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, spawn_blocking};

use super::crew::Crew;
use super::error::ApiError;

/// Runs one kind of blocking work (reads of the store, password checks) outside of the event loop.
#[derive(Debug)]
pub(crate) struct Lane {
    what: &'static str,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    /// Processors.
    threads_max: usize,
}

impl Lane {
    pub(crate) fn new(what: &'static str, at_once: usize, waiting_max: usize) -> Self {
        let threads_max = std::thread::available_parallelism().map_or(1, NonZero::get);
        let turns = Arc::new(Semaphore::new(at_once));
        Self { what, turns, waiting: AtomicUsize::new(0), waiting_max, threads_max }
    }

    /// For work that has a turn and can be shared: the turns that nobody wants now, up to one for each processor.
    pub(crate) fn crew(&self) -> Crew {
        let turn = || Arc::clone(&self.turns).try_acquire_owned().ok();
        Crew::new(std::iter::from_fn(turn).take(self.threads_max - 1).collect())
    }

    /// Waits for a turn and runs `work`. Refuses with 429 when too many wait already.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = {
            let _place = self.queue_up()?;
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            turn.expect("BUG: nobody closes the semaphore of a lane")
        };
        let work = move || {
            // The turn ends with the work, even if the request that asked for it is gone.
            let _turn = turn;
            work()
        };
        let done = match Handle::current().runtime_flavor() {
            // This thread hands its other tasks over and does the work itself: to wake another one for it and to be
            // woken by it would take longer than most reads.
            RuntimeFlavor::MultiThread => catch_unwind(AssertUnwindSafe(|| block_in_place(work))).ok(),
            _ => spawn_blocking(work).await.ok(),
        };
        done.ok_or_else(|| ApiError::internal("the server failed at this request; its log says why"))
    }

    fn queue_up(&self) -> Result<Place<'_>, ApiError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.waiting);
        if waiting >= self.waiting_max {
            let (what, limit) = (self.what, self.waiting_max);
            return Err(ApiError::busy(format!(
                "{waiting} {what} wait for their turn, the limit is {limit}; try again in a second"
            )));
        }
        Ok(place)
    }
}

struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn who_finds_the_queue_full_is_refused_and_the_others_get_their_turn() {
        let lane = Arc::new(Lane::new("reads", 1, 1));
        let (release, released) = mpsc::channel::<()>();
        let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
        let first = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move {
                lane.run(move || {
                    started.send(()).unwrap();
                    released.recv().unwrap();
                    1
                })
                .await
            }
        });
        running.recv().await.unwrap();
        let second = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.run(|| 2).await }
        });
        while lane.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = lane.run(|| 3).await.unwrap_err();
        assert_eq!(refused.status.as_u16(), 429);
        assert!(refused.message.contains("the limit is 1"), "{}", refused.message);
        release.send(()).unwrap();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(1), Ok(2)));
        assert_eq!(lane.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_crew_has_the_turns_that_nobody_wants() {
        let lane = Lane { threads_max: 4, ..Lane::new("reads", 3, 1) };
        let crew = lane.crew();
        assert_eq!(crew.threads(), 4);
        assert_eq!(lane.crew().threads(), 1, "none is left");
        drop(crew);
        assert_eq!(lane.run(|| 1).await, Ok(1), "they are given back");
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_frees_the_turn() {
        panics().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn so_it_is_where_the_event_loop_does_the_work() {
        panics().await;
    }

    async fn panics() {
        let lane = Lane::new("reads", 1, 1);
        let failed = lane.run(|| -> u8 { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(failed.status.as_u16(), 500);
        assert_eq!(lane.run(|| 4).await, Ok(4));
    }
}
