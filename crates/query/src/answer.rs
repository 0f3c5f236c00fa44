//! The rows of a query on their way to whoever asked.

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

/// What a query gives. Dropping it, or its batches, ends the query.
#[derive(Debug)]
pub struct Answer {
    /// The columns.
    pub schema: SchemaRef,
    /// The names of the columns as PostgreSQL gives them; none if the statement does not say how many there are. What is
    /// `avg(telemetry.speed)` in the schema is `avg` there.
    pub headings: Arc<[String]>,
    /// The rows.
    pub batches: Batches,
}

/// Rows as they are found. The query stands still while nobody takes them, and its time runs on.
pub struct Batches {
    ready: mpsc::Receiver<RecordBatch>,
    task: QueryTask,
    /// Whether all has been given.
    ended: bool,
    /// The batch that the reader took last. The statement allocated it, so it is dropped within the statement's scope.
    given: Option<RecordBatch>,
    scope: Arc<Scope>,
}

/// The task of a query, which ends when this is dropped.
pub(crate) struct QueryTask {
    running: JoinHandle<Result<(), QueryError>>,
    /// A task that has ended must not be polled again.
    has_ended: bool,
    /// How it ended, until that is told.
    outcome: Option<Result<(), QueryError>>,
    /// What ends with the task, where it is not the task of another.
    scope: Option<Arc<Scope>>,
}

impl QueryTask {
    pub(crate) fn new(running: JoinHandle<Result<(), QueryError>>) -> Self {
        Self { running, has_ended: false, outcome: None, scope: None }
    }

    /// The task, which works within this scope.
    pub(crate) fn of(mut self, scope: &Arc<Scope>) -> Self {
        self.scope = Some(Arc::clone(scope));
        self
    }

    /// Ready from the task's end on, however often it is asked.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_ended {
            let joined = ready!(self.running.poll_unpin(context));
            self.has_ended = true;
            let bug = |error: JoinError| Err(QueryError::Bug { message: error.to_string() });
            self.outcome = Some(joined.unwrap_or_else(bug));
        }
        Poll::Ready(())
    }

    /// How the task ended.
    pub(crate) async fn result(&mut self) -> Result<(), QueryError> {
        poll_fn(|context| self.poll_ended(context)).await;
        self.outcome.take().unwrap_or(Ok(()))
    }

    /// What the task sends, or how it ended without having sent it.
    pub(crate) async fn first<T>(&mut self, sent: oneshot::Receiver<T>) -> Result<T, QueryError> {
        // Nor must this be polled again once its other end is gone.
        let mut sent = sent.fuse();
        let received = poll_fn(|context| {
            // In this order: what a task sends it has sent before it ends.
            let ended = self.poll_ended(context);
            match sent.poll_unpin(context) {
                Poll::Ready(Ok(sent)) => Poll::Ready(Some(sent)),
                // An operator that cannot be stopped may hold the other end for long.
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

    /// Keeps what is given, and gives back what was given before.
    fn keep(&mut self, batch: Option<RecordBatch>) {
        let before = std::mem::replace(&mut self.given, batch);
        scope::work(Some(&self.scope), || drop(before));
    }

    /// The next rows; `None` after the last, and after an error.
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
    /// All rows at once, for answers that are known to be small.
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
        // An operator that cannot be stopped keeps its end of the channel open, so the task is looked at as well. What it has sent
        // before its end comes first.
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

    use super::*;

    /// A query that ends in some way before anybody looks.
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
        Scope::open(usize::MAX / 4, scope::TotalAllocated::new(usize::MAX / 4)).unwrap()
    }

    fn refused() -> Result<(), QueryError> {
        Err(QueryError::Invalid { message: "no".into() })
    }

    #[tokio::test]
    async fn a_query_that_ends_before_anybody_looks_gives_its_rows_and_how_it_ended() {
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
    async fn a_query_that_ends_without_an_answer_says_how_it_ended() {
        let (opening, _ready, mut task) = ended(false, refused()).await;
        assert!(matches!(task.first(opening).await, Err(QueryError::Invalid { .. })));
        let (opening, _ready, mut task) = ended(false, Ok(())).await;
        assert!(matches!(task.first(opening).await, Err(QueryError::Bug { .. })));
    }
}
