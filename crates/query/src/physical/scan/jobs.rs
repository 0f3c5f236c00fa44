//! Runs blocking work of an operator in jobs.
//!
//! Each job reads a bounded number of rows and ends. So no thread for blocking work ever waits until another operator takes rows.

use std::task::{Context, Poll, ready};

use datafusion::common::{DataFusionError, Result};
use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::scope;

/// Work that is done in jobs on the threads for blocking work, one job after the other.
pub(crate) enum Jobs<T> {
    /// No job runs.
    Idle(T),
    Running(JoinHandle<Result<T>>),
    /// A job failed, or the caller has taken the work of the last one.
    Ended,
}

impl<T: Send + 'static> Jobs<T> {
    /// Starts the next job if none runs.
    pub(crate) fn start(&mut self, job: impl FnOnce(T) -> Result<T> + Send + 'static) {
        *self = match std::mem::replace(self, Self::Ended) {
            Self::Idle(work) => {
                let scope = scope::current();
                Self::Running(tokio::task::spawn_blocking(move || scope::work(scope.as_ref(), || job(work))))
            }
            other => other,
        };
    }

    /// Returns the work when the running job is done, and leaves [`Ended`](Self::Ended). Returns `None` if no job runs.
    pub(crate) fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let Self::Running(job) = self else { return Poll::Ready(None) };
        let done = ready!(job.poll_unpin(context));
        *self = Self::Ended;
        let panicked = |panic| DataFusionError::Internal(format!("a read ended early: {panic}"));
        Poll::Ready(Some(done.map_err(panicked).flatten()))
    }
}
