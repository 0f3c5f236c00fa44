//! The threads of an engine: one group plans and computes, one group reads, and one thread watches the time.
//!
//! The clock has a thread of its own: an operator may compute for long without yielding, and the client must get its error in time
//! nevertheless.

use std::sync::Arc;
use std::time::Duration;

use model::limits::QUERY_STACK_BYTES;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

use crate::QueryError;
use crate::answer::QueryTask;
use crate::scope::{self, Scope, Working};

pub(crate) struct Threads {
    /// `None` only while this is dropped.
    runtimes: Option<(Runtime, Runtime)>,
    work: Handle,
    clock: Handle,
}

impl Threads {
    pub(crate) fn start(threads: usize) -> Result<Self, QueryError> {
        let start = |name, workers, readers| {
            Builder::new_multi_thread()
                .worker_threads(workers)
                .max_blocking_threads(readers)
                .thread_name(name)
                .thread_stack_size(QUERY_STACK_BYTES)
                .enable_time()
                .build()
                .map_err(|error| QueryError::Threads { message: error.to_string() })
        };
        let work = start("query", threads.max(1), threads.max(1))?;
        let clock = start("query-clock", 1, 1)?;
        Ok(Self { work: work.handle().clone(), clock: clock.handle().clone(), runtimes: Some((work, clock)) })
    }

    /// Runs the work of a query. The work is cancelled when its time is over or when the task is dropped; it stops at its next
    /// yield.
    pub(crate) fn spawn(
        &self,
        timeout: Duration,
        scope: &Arc<Scope>,
        work: impl Future<Output = Result<(), QueryError>> + Send + 'static,
    ) -> QueryTask {
        let deadline = Instant::now() + timeout;
        let working = Working(Arc::clone(scope));
        let work = scope::within(Arc::clone(scope), async move {
            let Working(scope) = &working;
            // An exceeded limit comes before a result.
            tokio::select! {
                biased;
                error = scope.over() => Err(error),
                result = work => result,
            }
        });
        let mut task = QueryTask::new(self.work.spawn(work)).of(scope);
        QueryTask::new(self.clock.spawn(async move {
            let ended = tokio::time::timeout_at(deadline, task.result()).await;
            ended.unwrap_or(Err(QueryError::Timeout { limit: timeout }))
        }))
    }
}

impl Drop for Threads {
    /// A task of these threads may be the last owner, and such a task must not block, so the threads are shut down in the
    /// background.
    fn drop(&mut self) {
        if let Some((work, clock)) = self.runtimes.take() {
            clock.shutdown_background();
            work.shutdown_background();
        }
    }
}
