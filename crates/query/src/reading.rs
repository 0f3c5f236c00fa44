//! From a store that blocks to a stream that does not.
//!
//! A reader works in jobs on the threads for blocking work, each of which reads so many rows and is over; no such thread
//! ever waits for whoever takes the rows. The next job runs while the rows of the last are taken.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures_util::{FutureExt, Stream};
use model::limits;
use parking_lot::Mutex;
use store::{BatchReader, StoreError, TableRead, TableSnapshot};
use tokio::task::JoinHandle;

/// Bytes after which a job ends, however few rows it has read.
const JOB_BYTES: usize = 8 * 1024 * 1024;

/// The readers of one execution. Partitions take them one by one, so that all end at about the same time.
pub(crate) struct Reading {
    snapshot: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
    read: TableRead,
    readers: Mutex<Option<Readers>>,
}

type Readers = VecDeque<Box<dyn BatchReader>>;

impl Reading {
    pub(crate) fn new(snapshot: Arc<dyn TableSnapshot>, schema: SchemaRef, read: TableRead) -> Self {
        Self { snapshot, schema, read, readers: Mutex::new(None) }
    }

    /// A reader that nobody has; the first call opens them.
    fn take(&self) -> Result<Option<Box<dyn BatchReader>>, StoreError> {
        let mut readers = self.readers.lock();
        if readers.is_none() {
            *readers = Some(self.snapshot.read(&self.read)?.into());
        }
        Ok(readers.as_mut().and_then(VecDeque::pop_front))
    }

    fn conform(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, columns, rows) = batch.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("read", &self.read).finish_non_exhaustive()
    }
}

/// The rows of one partition.
pub(crate) struct RowStream {
    reading: Arc<Reading>,
    progress: Progress,
    batches: VecDeque<RecordBatch>,
    jobs_done: usize,
    /// Rows that the limit still allows.
    rows_left: usize,
    dropped: Arc<AtomicBool>,
    metrics: BaselineMetrics,
}

enum Progress {
    /// No job runs; the reader that the last one used, if it has not ended.
    Idle(Option<Box<dyn BatchReader>>),
    Running(JoinHandle<Result<Done, StoreError>>),
    Ended,
}

/// What a job leaves.
struct Done {
    batches: VecDeque<RecordBatch>,
    reader: Option<Box<dyn BatchReader>>,
    /// Whether there are no more readers.
    ended: bool,
}

impl RowStream {
    pub(crate) fn new(reading: Arc<Reading>, limit: Option<usize>, metrics: BaselineMetrics) -> Self {
        Self {
            reading,
            progress: Progress::Idle(None),
            batches: VecDeque::new(),
            jobs_done: 0,
            rows_left: limit.unwrap_or(usize::MAX),
            dropped: Arc::default(),
            metrics,
        }
    }

    fn start_job(&mut self) {
        let Progress::Idle(reader) = &mut self.progress else { return };
        let reader = reader.take();
        // The first job ends with its first batch: that may be all that anybody wants.
        let rows_max = if self.jobs_done == 0 { 1 } else { limits::QUERY_READ_ROWS_PER_JOB };
        let (reading, dropped) = (Arc::clone(&self.reading), Arc::clone(&self.dropped));
        let job = move || run_job(&reading, reader, rows_max, &dropped);
        self.progress = Progress::Running(tokio::task::spawn_blocking(job));
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if self.rows_left == 0 {
                return Poll::Ready(None);
            }
            if let Some(batch) = self.batches.pop_front() {
                if self.jobs_done > 1 {
                    self.start_job();
                }
                let batch = self.reading.conform(batch)?;
                let batch =
                    if batch.num_rows() > self.rows_left { batch.slice(0, self.rows_left) } else { batch };
                self.rows_left -= batch.num_rows();
                return Poll::Ready(Some(Ok(batch)));
            }
            match &mut self.progress {
                Progress::Idle(_) => self.start_job(),
                Progress::Ended => return Poll::Ready(None),
                Progress::Running(job) => {
                    let done = ready!(job.poll_unpin(context));
                    self.progress = Progress::Ended;
                    let done = done
                        .map_err(|panic| DataFusionError::Internal(format!("a read ended early: {panic}")))?
                        .map_err(crate::error::external)?;
                    self.jobs_done += 1;
                    self.batches = done.batches;
                    self.progress = if done.ended { Progress::Ended } else { Progress::Idle(done.reader) };
                }
            }
        }
    }
}

/// Reads until there are enough rows or no more.
fn run_job(
    reading: &Reading,
    mut reader: Option<Box<dyn BatchReader>>,
    rows_max: usize,
    dropped: &AtomicBool,
) -> Result<Done, StoreError> {
    let (mut batches, mut rows, mut bytes) = (VecDeque::new(), 0, 0);
    while rows < rows_max && bytes < JOB_BYTES && !dropped.load(Ordering::Relaxed) {
        let mut current = match reader.take() {
            Some(reader) => reader,
            None => match reading.take()? {
                Some(reader) => reader,
                None => return Ok(Done { batches, reader: None, ended: true }),
            },
        };
        if let Some(batch) = current.next()? {
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
            batches.push_back(batch);
            reader = Some(current);
        }
    }
    Ok(Done { batches, reader, ended: false })
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
        Arc::clone(&self.reading.schema)
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}
