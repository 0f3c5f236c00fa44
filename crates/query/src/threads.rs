//! The threads of an engine: one group plans and computes, one group reads, one group runs tasks, and one thread watches the time.
//!
//! A task does not yield, so each has a thread of its own: a long task must not delay a short one, or a statement.
//!
//! The clock has a thread of its own: an operator may compute for long without yielding, and the client must get its error in time
//! nevertheless.

use std::sync::Arc;
use std::time::Duration;

use model::limits::{QUERY_STACK_BYTES, QUERY_TASK_STACK_BYTES};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

use crate::QueryError;
use crate::answer::QueryTask;
use crate::scope::{self, Scope, Working};

pub(crate) struct Threads {
    /// `None` only while this is dropped.
    runtimes: Option<[Runtime; 3]>,
    work: Handle,
    clock: Handle,
    tasks: Handle,
}

impl Threads {
    /// Starts `threads` threads that compute and as many that read. Further ones start when they are needed, up to `tasks_max`.
    pub(crate) fn start(threads: usize, tasks_max: usize) -> Result<Self, QueryError> {
        let refused = |error: std::io::Error| QueryError::Threads { message: error.to_string() };
        let start = |name, workers, readers, stack_bytes| {
            Builder::new_multi_thread()
                .worker_threads(workers)
                .max_blocking_threads(readers)
                .thread_name(name)
                .thread_stack_size(stack_bytes)
                .enable_time()
                .build()
                .map_err(refused)
        };
        let work = start("query", threads.max(1), threads.max(1), QUERY_STACK_BYTES)?;
        // It only waits: it neither plans nor drops what was planned.
        let clock = start("query-clock", 1, 1, QUERY_TASK_STACK_BYTES)?;
        let tasks = Builder::new_current_thread()
            .max_blocking_threads(tasks_max.max(1))
            .thread_name("query-task")
            .thread_stack_size(QUERY_TASK_STACK_BYTES)
            .build()
            .map_err(refused)?;
        Ok(Self {
            work: work.handle().clone(),
            clock: clock.handle().clone(),
            tasks: tasks.handle().clone(),
            runtimes: Some([work, clock, tasks]),
        })
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
        let working = Working::begin(scope);
        let work = scope::within(Arc::clone(scope), async move {
            let scope = working.scope();
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

    /// Runs work that does not yield. It continues after its query has ended, until it asks its scope.
    pub(crate) async fn run_task(
        &self,
        scope: &Arc<Scope>,
        task: impl FnOnce() -> Result<(), QueryError> + Send + 'static,
    ) -> Result<(), QueryError> {
        let working = Working::begin(scope);
        let running = self.tasks.spawn_blocking(move || scope::work(Some(working.scope()), task));
        running.await.unwrap_or_else(|error| Err(QueryError::Bug { message: error.to_string() }))
    }
}

impl Drop for Threads {
    /// A task of these threads may be the last owner, and such a task must not block, so the threads are shut down in the
    /// background.
    fn drop(&mut self) {
        let runtimes = self.runtimes.take();
        runtimes.into_iter().flatten().for_each(Runtime::shutdown_background);
    }
}
