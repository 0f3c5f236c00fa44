//! The answer of a query: its rows while they are computed.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};

use crate::QueryError;
use crate::scope::{self, Scope};

/// The answer of a query. To drop it, or its batches, ends the query.
#[derive(Debug)]
pub struct Answer {
    /// The columns.
    pub schema: SchemaRef,
    /// The names of the columns as PostgreSQL gives them: `avg` for a column with the schema name `avg(telemetry.speed)`. Empty if
    /// the statement does not determine the number of columns.
    pub headings: Arc<[String]>,
    pub batches: Batches,
}

/// Rows as they are computed. The query pauses while the caller reads no rows; its time limit runs on.
pub struct Batches {
    ready: mpsc::Receiver<RecordBatch>,
    task: QueryTask,
    /// Whether the last batch, or an error, has been returned.
    ended: bool,
    /// The batch that the reader took last. The statement allocated it, so it is dropped within the statement's scope.
    given: Option<RecordBatch>,
    scope: Arc<Scope>,
}

/// The task of a query. To drop it ends the task.
#[derive(Debug)]
pub(crate) struct QueryTask {
    running: JoinHandle<Result<(), QueryError>>,
    /// Whether the task has ended. Such a task must not be polled again.
    has_ended: bool,
    /// The result of the task, until the caller takes it.
    outcome: Option<Result<(), QueryError>>,
    /// The scope that ends with this task; none if another task owns it.
    scope: Option<Arc<Scope>>,
}

impl QueryTask {
    pub(crate) fn new(running: JoinHandle<Result<(), QueryError>>) -> Self {
        Self { running, has_ended: false, outcome: None, scope: None }
    }

    /// Makes the task the owner of a scope.
    pub(crate) fn of(mut self, scope: &Arc<Scope>) -> Self {
        self.scope = Some(Arc::clone(scope));
        self
    }

    /// Ready when the task has ended, also when it is polled again later.
    pub(crate) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_ended {
            let joined = ready!(self.running.poll_unpin(context));
            self.has_ended = true;
            let bug = |error: JoinError| Err(QueryError::Bug { message: error.to_string() });
            self.outcome = Some(joined.unwrap_or_else(bug));
        }
        Poll::Ready(())
    }

    /// Waits for the result of the task.
    pub(crate) async fn result(&mut self) -> Result<(), QueryError> {
        poll_fn(|context| self.poll_ended(context)).await;
        self.outcome.take().unwrap_or(Ok(()))
    }

    /// Waits for the value that the task sends, or returns the task's error if it ends without one.
    pub(crate) async fn first<T>(&mut self, sent: oneshot::Receiver<T>) -> Result<T, QueryError> {
        // A fused receiver may be polled after its sender is gone.
        let mut sent = sent.fuse();
        let received = poll_fn(|context| {
            // The order matters: a task that sends a value does so before it ends.
            let ended = self.poll_ended(context);
            match sent.poll_unpin(context) {
                Poll::Ready(Ok(sent)) => Poll::Ready(Some(sent)),
                // An operator that does not stop may keep the sender for long.
                Poll::Ready(Err(_)) | Poll::Pending => ended.map(|()| None),
            }
        });
        if let Some(sent) = received.await {
            return Ok(sent);
        }
        let without_answer = || QueryError::Bug { message: "a query ended without an answer".into() };
        Err(self.result().await.err().unwrap_or_else(without_answer))
    }
}

impl Drop for QueryTask {
    fn drop(&mut self) {
        if let Some(scope) = &self.scope {
            scope.end();
        }
        self.running.abort();
    }
}

impl Batches {
    pub(crate) fn new(ready: mpsc::Receiver<RecordBatch>, task: QueryTask, scope: Arc<Scope>) -> Self {
        Self { ready, task, ended: false, given: None, scope }
    }

    /// Keeps the batch that is returned, and drops the one before within the statement's scope.
    fn keep(&mut self, batch: Option<RecordBatch>) {
        let before = std::mem::replace(&mut self.given, batch);
        scope::work(Some(&self.scope), || drop(before));
    }

    /// Returns the next rows; `None` after the last ones and after an error.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, QueryError>> {
        StreamExt::next(self).await
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.keep(None);
    }
}

impl Answer {
    /// Collects all rows, for answers that are known to be small.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>, QueryError> {
        let mut all = Vec::new();
        while let Some(batch) = self.batches.next().await {
            all.push(batch?);
        }
        Ok(all)
    }
}

impl Stream for Batches {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // An operator that does not stop keeps its sender, so the task is polled as well. Batches that the task has sent before its
        // end come first.
        let has_ended = self.task.poll_ended(context).is_ready();
        self.keep(None);
        match (self.ready.poll_recv(context), &self.task.outcome) {
            (Poll::Ready(Some(batch)), _) => {
                self.keep(Some(batch.clone()));
                Poll::Ready(Some(Ok(batch)))
            }
            (Poll::Ready(None), _) if !has_ended => Poll::Pending,
            (Poll::Pending, None | Some(Ok(()))) => Poll::Pending,
            (Poll::Ready(None) | Poll::Pending, _) => {
                self.ended = true;
                Poll::Ready(self.task.outcome.take().and_then(Result::err).map(Err))
            }
        }
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use model::limits::QueryLimits;

    use super::*;

    /// Returns a query that has ended before it is polled.
    async fn ended(
        opens: bool,
        outcome: Result<(), QueryError>,
    ) -> (oneshot::Receiver<i32>, mpsc::Receiver<RecordBatch>, QueryTask) {
        let (opened, opening) = oneshot::channel();
        let (batches, ready) = mpsc::channel(1);
        let running = tokio::spawn(async move {
            if opens {
                opened.send(7).unwrap();
                let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
                batches.send(RecordBatch::try_from_iter([("n", column)]).unwrap()).await.unwrap();
            }
            outcome
        });
        while !running.is_finished() {
            tokio::task::yield_now().await;
        }
        (opening, ready, QueryTask::new(running))
    }

    fn scope() -> Arc<Scope> {
        let total = scope::TotalAllocated::new(&QueryLimits::default(), Arc::default());
        Scope::open(usize::MAX / 4, total).unwrap()
    }

    fn refused() -> Result<(), QueryError> {
        Err(QueryError::Invalid { message: "no".into() })
    }

    #[tokio::test]
    async fn a_query_that_ends_before_it_is_polled_gives_rows_and_result() {
        for outcome in [Ok(()), refused()] {
            let fails = outcome.is_err();
            let (opening, ready, mut task) = ended(true, outcome).await;
            assert_eq!(task.first(opening).await.unwrap(), 7);
            let mut batches = Batches::new(ready, task, scope());
            assert_eq!(batches.next().await.unwrap().unwrap().num_rows(), 1);
            let last = batches.next().await;
            assert_eq!(last.is_some_and(|last| last.unwrap_err().to_string().contains("no")), fails);
            assert!(batches.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn a_query_that_ends_without_an_answer_returns_its_error() {
        let (opening, _ready, mut task) = ended(false, refused()).await;
        assert!(matches!(task.first(opening).await, Err(QueryError::Invalid { .. })));
        let (opening, _ready, mut task) = ended(false, Ok(())).await;
        assert!(matches!(task.first(opening).await, Err(QueryError::Bug { .. })));
    }
}
