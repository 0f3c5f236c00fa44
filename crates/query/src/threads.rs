//! The threads of an engine: so many that plan and compute, as many that read, and one that looks at the clock.
//!
//! The clock has a thread of its own because an operator may compute for long between two times at which it can be
//! stopped. Whoever asked is told in time all the same.

use std::sync::Arc;
use std::time::Duration;

use model::limits::QUERY_STACK_BYTES;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

use crate::QueryError;
use crate::answer::QueryTask;
use crate::scope::{self, Scope, Working};

pub(crate) struct Threads {
    /// Taken only when dropped.
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

    /// Starts work that is given up, and at the next chance stopped, when its time is over or the task is dropped.
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
            // What has been noticed comes first.
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
    /// The last owner may be a task of these threads, where nothing may wait for them.
    fn drop(&mut self) {
        if let Some((work, clock)) = self.runtimes.take() {
            clock.shutdown_background();
            work.shutdown_background();
        }
    }
}
