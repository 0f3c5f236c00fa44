//! The rows of a query on their way to whoever asked.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::QueryError;

/// What a query gives. Dropping it, or its batches, ends the query.
#[derive(Debug)]
pub struct Answer {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Batches,
}

/// Rows as they are found. The query stands still while nobody takes them, and its time runs on.
pub struct Batches {
    ready: mpsc::Receiver<RecordBatch>,
    task: QueryTask,
    /// How the task ended, until it is told; what it has sent before comes first.
    outcome: Option<Result<(), QueryError>>,
    ended: bool,
}

/// The task of a query, which ends when this is dropped.
pub(crate) struct QueryTask(pub(crate) JoinHandle<Result<(), QueryError>>);

impl QueryTask {
    /// How the task ended.
    pub(crate) async fn result(&mut self) -> Result<(), QueryError> {
        ended((&mut self.0).await)
    }
}

impl Drop for QueryTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn ended(result: Result<Result<(), QueryError>, tokio::task::JoinError>) -> Result<(), QueryError> {
    result.unwrap_or_else(|error| Err(QueryError::Bug { message: error.to_string() }))
}

impl Batches {
    pub(crate) fn new(ready: mpsc::Receiver<RecordBatch>, task: QueryTask) -> Self {
        Self { ready, task, outcome: None, ended: false }
    }

    /// The next rows; `None` after the last, and after an error.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, QueryError>> {
        StreamExt::next(self).await
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
        // An operator that cannot be stopped keeps its end of the channel open, so the task is looked at as well.
        if self.outcome.is_none()
            && let Poll::Ready(result) = self.task.0.poll_unpin(context)
        {
            self.outcome = Some(ended(result));
        }
        match (self.ready.poll_recv(context), &mut self.outcome) {
            (Poll::Ready(Some(batch)), _) => Poll::Ready(Some(Ok(batch))),
            (Poll::Pending, None) | (Poll::Ready(None), None) => Poll::Pending,
            (Poll::Pending, Some(Ok(()))) => Poll::Pending,
            (_, outcome) => {
                let outcome = outcome.take();
                self.ended = true;
                Poll::Ready(outcome.and_then(Result::err).map(Err))
            }
        }
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("ended", &self.ended).finish_non_exhaustive()
    }
}
