//! Admits queries: a limited number runs, a limited number waits, and further ones are refused as busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::QueryError;

#[derive(Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    running_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
    waiting_time_max: Duration,
}

impl Admission {
    pub(crate) fn new(running_max: usize, waiting_max: usize, waiting_time_max: Duration) -> Self {
        let running_max = running_max.clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(running_max));
        Self { permits, running_max, waiting: AtomicUsize::new(0), waiting_max, waiting_time_max }
    }

    /// Waits until the query may run. The query counts as running until the permit is dropped.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = Waiting::begin(&self.waiting);
        if waiting.number > self.waiting_max {
            let reason = format!("{} queries run and {} wait, the limit", self.running_max, self.waiting_max);
            return Err(QueryError::Busy { reason });
        }
        match tokio::time::timeout(self.waiting_time_max, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(closed)) => Err(QueryError::Bug { message: closed.to_string() }),
            Err(_) => {
                let seconds = self.waiting_time_max.as_secs_f64();
                let reason = format!("{} queries run and none has ended for {seconds} s", self.running_max);
                Err(QueryError::Busy { reason })
            }
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.running_max - self.permits.available_permits()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A waiting query. It is counted until it is dropped, also when the caller gives up.
struct Waiting<'a> {
    counter: &'a AtomicUsize,
    number: usize,
}

impl<'a> Waiting<'a> {
    fn begin(counter: &'a AtomicUsize) -> Self {
        Self { counter, number: counter.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}
