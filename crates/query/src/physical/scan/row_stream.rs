//! Makes a stream, which must not block, of the rows of a store, which blocks.
//!
//! Rows are read in [`Jobs`]. The next job runs while the operator above takes the rows of the last one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures_util::Stream;
use model::limits;

use super::jobs::Jobs;
use super::partition_rows::PartitionRows;
use super::shared_readers::{Next, SharedReaders};
use crate::scope;

/// The rows of one partition as a stream.
pub(super) struct RowStream {
    schema: SchemaRef,
    jobs: Jobs<ReadAhead>,
    batches: VecDeque<RecordBatch>,
    jobs_done: usize,
    dropped: Arc<AtomicBool>,
    metrics: BaselineMetrics,
}

/// The state of a job that reads ahead.
struct ReadAhead {
    rows: PartitionRows,
    batches: VecDeque<RecordBatch>,
    /// Whether all rows of this slice have been read.
    is_at_slice_end: bool,
    /// Whether all rows have been read.
    ended: bool,
}

impl RowStream {
    pub(super) fn new(readers: Arc<SharedReaders>, metrics: BaselineMetrics) -> Self {
        let schema = Arc::clone(readers.schema());
        let ahead = ReadAhead {
            rows: PartitionRows::new(readers),
            batches: VecDeque::new(),
            is_at_slice_end: false,
            ended: false,
        };
        let (batches, dropped) = (VecDeque::new(), Arc::default());
        Self { schema, jobs: Jobs::Idle(ahead), batches, jobs_done: 0, dropped, metrics }
    }

    /// Starts a job. A slice is opened only when the operator above has taken all rows of the one before: only then does that operator
    /// know whether it needs more.
    fn start_job(&mut self, may_open: bool) {
        // The first job ends with its first batch, which may be all that the query needs.
        let rows_max = if self.jobs_done == 0 { 1 } else { limits::QUERY_READ_ROWS_PER_JOB };
        let dropped = Arc::clone(&self.dropped);
        self.jobs.start(move |ahead| ahead.read(rows_max, may_open, &dropped));
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(batch) = self.batches.pop_front() {
                let is_at_slice_end = matches!(&self.jobs, Jobs::Idle(ahead) if ahead.is_at_slice_end);
                if self.jobs_done > 1 && !is_at_slice_end {
                    self.start_job(false);
                }
                return Poll::Ready(Some(Ok(batch)));
            }
            if let Jobs::Idle(ahead) = &mut self.jobs
                && ahead.is_at_slice_end
            {
                ahead.rows.end_slice();
                ready!(ahead.rows.poll_slice(context));
            }
            self.start_job(true);
            let Some(mut ahead) = ready!(self.jobs.poll_done(context)).transpose()? else {
                return Poll::Ready(None);
            };
            self.jobs_done += 1;
            self.batches = std::mem::take(&mut ahead.batches);
            if !ahead.ended {
                self.jobs = Jobs::Idle(ahead);
            }
        }
    }
}

impl ReadAhead {
    /// Reads until there are enough rows, or no more.
    fn read(mut self, rows_max: usize, mut may_open: bool, dropped: &AtomicBool) -> Result<Self> {
        let (mut rows, mut bytes) = (0, 0);
        let bytes_max = scope::read_ahead_bytes();
        self.is_at_slice_end = false;
        while rows < rows_max && bytes < bytes_max && !dropped.load(Ordering::Relaxed) {
            scope::wait_for_memory(dropped);
            scope::checkpoint()?;
            let batch = match self.rows.step(may_open)? {
                Next::Item(batch) => batch,
                Next::SliceEnd => {
                    self.is_at_slice_end = true;
                    break;
                }
                Next::End => {
                    self.ended = true;
                    break;
                }
            };
            may_open = false;
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
            self.batches.push_back(batch);
        }
        Ok(self)
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for RowStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}
