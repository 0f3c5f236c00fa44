//! Work on the threads of the engine that is not SQL. It has the admission, the time limit and the bound on memory of a statement.
//!
//! A task runs on one thread and never yields, so nothing can end it from outside. It asks its [`TaskScope`] now and then whether it
//! may continue. Its caller gets the error of an exceeded limit at once, whether the task has noticed or not.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;

use model::limits::QUERY_BATCHES_WAITING_MAX;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::answer::QueryTask;
use crate::scope::{self, Scope};
use crate::{Engine, QueryError, Session};

/// Why a task has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError<E> {
    /// The engine refused or ended it.
    #[error("{0}")]
    Engine(QueryError),
    /// The task's own error.
    #[error("{0}")]
    Task(E),
}

impl Engine {
    /// Runs a task, and returns its result when it is complete. A caller that stops waiting ends the task.
    ///
    /// # Errors
    /// The error of the task; or the engine's, if it did not admit the task or has ended it.
    pub async fn run_task<T: Send + 'static, E: Send + 'static>(
        &self,
        session: &Session,
        task: impl FnOnce(&Arc<TaskScope>) -> Result<T, E> + Send + 'static,
    ) -> Result<Counted<T>, TaskError<E>> {
        let (sent, result) = oneshot::channel();
        let work = move |scope: &Arc<TaskScope>| {
            let result = task(scope);
            // What a task returns after its end is at most a part of the result, and its error is a consequence of the end.
            scope.check()?;
            // The caller may have left, which is not an error.
            drop(sent.send(result));
            Ok(())
        };
        let (mut task, scope) = self.start_task(session, work).map_err(TaskError::Engine)?;
        match task.first(result).await.map_err(TaskError::Engine)? {
            Ok(value) => Ok(Counted { value: Some(value), scope }),
            Err(error) => Err(TaskError::Task(error)),
        }
    }

    /// Starts a task that sends its result in chunks. It pauses while the caller takes none; its time limit runs on.
    ///
    /// # Errors
    /// The engine has too many statements. Other errors come with the chunks.
    pub fn stream_task<C: Send + 'static, E: Send + 'static>(
        &self,
        session: &Session,
        task: impl FnOnce(&Arc<TaskScope>, &ChunkSender<C>) -> Result<(), E> + Send + 'static,
    ) -> Result<Chunks<C, E>, QueryError> {
        let (sender, ready) = mpsc::channel(QUERY_BATCHES_WAITING_MAX);
        let (failed, failure) = oneshot::channel();
        let work = move |scope: &Arc<TaskScope>| {
            let sender = ChunkSender { sender, scope: Arc::clone(scope) };
            let result = task(scope, &sender);
            scope.check()?;
            if let Err(error) = result {
                drop(failed.send(error));
            }
            Ok(())
        };
        let (task, scope) = self.start_task(session, work)?;
        Ok(Chunks { ready, failure, task, has_ended: false, _scope: scope })
    }

    fn start_task(
        &self,
        session: &Session,
        work: impl FnOnce(&Arc<TaskScope>) -> Result<(), QueryError> + Send + 'static,
    ) -> Result<(QueryTask, Arc<Scope>), QueryError> {
        let inner = Arc::clone(&self.0);
        let timeout = session.timeout(inner.limits.timeout);
        let tenant = session.tenant();
        let scope = inner.open_scope()?;
        let of_task = Arc::new(TaskScope(Arc::clone(&scope)));
        let task = self.0.threads.spawn(timeout, &scope, async move {
            // A task counts as running until its thread is free again.
            let permit = inner.admission.enter(tenant).await?;
            let work = {
                let scope = Arc::clone(&of_task);
                move || {
                    let _permit = permit;
                    scope.check()?;
                    work(&scope)
                }
            };
            inner.threads.run_task(&of_task.0, work).await
        });
        Ok((task, scope))
    }
}

/// Tells a task whether it may continue. Only the thread of the task may use it.
#[derive(Debug)]
pub struct TaskScope(Arc<Scope>);

impl TaskScope {
    /// Returns whether the task may continue. A task asks it at least once in a hundred milliseconds, and before it has allocated many
    /// megabytes more.
    ///
    /// # Errors
    /// The time of the task is over, it holds too much memory, or nobody waits for it. The caller of the task gets the reason itself,
    /// so the error need not be passed on.
    pub fn check(&self) -> Result<(), QueryError> {
        scope::checkpoint()
    }

    /// Runs work whose memory the task does not pay for, such as a read that fills caches.
    pub fn outside<T>(&self, work: impl FnOnce() -> T) -> T {
        scope::outside(work)
    }
}

/// The result of a task. Its memory counts for the task until it is dropped.
pub struct Counted<T> {
    /// `None` only while this is dropped.
    value: Option<T>,
    scope: Arc<Scope>,
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("BUG: it is there until dropped")
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        scope::work(Some(&self.scope), || drop(value));
    }
}

impl<T: fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Where a task sends its chunks.
#[derive(Debug)]
pub struct ChunkSender<C> {
    sender: mpsc::Sender<C>,
    scope: Arc<TaskScope>,
}

impl<C: Send> ChunkSender<C> {
    /// Sends a chunk of about [`QUERY_PIECE_BYTES`](model::limits::QUERY_PIECE_BYTES) at most. Blocks while two chunks wait for the
    /// caller.
    ///
    /// # Errors
    /// The task must end, as [`TaskScope::check`] says.
    pub fn send(&self, chunk: C) -> Result<(), QueryError> {
        self.scope.check()?;
        let sent = Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = self.scope.0.end_of_statement() => false,
                sent = self.sender.send(chunk) => sent.is_ok(),
            }
        });
        if sent { Ok(()) } else { Err(QueryError::Cancelled) }
    }
}

/// The chunks of a task as it sends them. To drop this ends the task.
#[derive(Debug)]
pub struct Chunks<C, E> {
    ready: mpsc::Receiver<C>,
    failure: oneshot::Receiver<E>,
    task: QueryTask,
    has_ended: bool,
    _scope: Arc<Scope>,
}

impl<C, E> Chunks<C, E> {
    /// Returns the next chunk; `None` after the last one and after an error.
    pub async fn next(&mut self) -> Option<Result<C, TaskError<E>>> {
        if self.has_ended {
            return None;
        }
        let chunk = poll_fn(|context| {
            // A task that does not stop keeps its sender. Chunks that it has sent before its end come first.
            let has_ended = self.task.poll_ended(context).is_ready();
            match self.ready.poll_recv(context) {
                Poll::Ready(Some(chunk)) => Poll::Ready(Some(chunk)),
                Poll::Ready(None) | Poll::Pending if has_ended => Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        });
        if let Some(chunk) = chunk.await {
            return Some(Ok(chunk));
        }
        self.has_ended = true;
        match self.task.result().await {
            Err(error) => Some(Err(TaskError::Engine(error))),
            Ok(()) => self.failure.try_recv().ok().map(|error| Err(TaskError::Task(error))),
        }
    }
}
