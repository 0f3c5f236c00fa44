//! From a store that blocks to a stream that does not.
//!
//! Rows are read in jobs on the threads for blocking work, each of which reads so many and is over; no such thread ever
//! waits for whoever takes the rows. The next job runs while the rows of the last are taken.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures_util::{FutureExt, Stream};
use model::limits;
use parking_lot::Mutex;
use store::table::{COLUMN_KIND, TAG_RUNS_TYPE};
use store::{BatchReader, ReadOrder, StoreError, TableRead, TableSnapshot};
use tokio::task::JoinHandle;

use crate::scope;
use crate::time_slices::{Slices, Slicing};

/// Bytes after which a job ends, however few rows it has read.
const JOB_BYTES: usize = 8 * 1024 * 1024;

/// How an operator takes the rows of a scan, where it says more than the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Manner {
    /// Columns of tags come in runs.
    pub(crate) tag_runs: bool,
    /// Rows of a series come one after the other by time, all in one partition, unless the scan has an order of its own.
    pub(crate) whole_series: bool,
}

/// The readers of one execution. Partitions take them one by one, so that all end at about the same time.
pub(crate) struct Reading {
    snapshot: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
    read: TableRead,
    manner: Manner,
    readers: Mutex<Readers>,
}

/// Readers that nobody has, and where more come from.
struct Readers {
    open: VecDeque<Box<dyn BatchReader>>,
    rest: Rest,
    /// Partitions that have rows of this slice to read, or on their way to whoever takes them.
    busy: usize,
    /// Partitions that wait for the next slice.
    waiting: Vec<Waker>,
}

impl Readers {
    fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

/// One thing after the other, up to where whoever wants more has to say so.
enum Taken<T> {
    Is(T),
    SliceEnd,
    End,
}

/// What no reader has been opened for.
enum Rest {
    All,
    Slices(Slices),
    Nothing,
}

impl Reading {
    /// `schema` is that of the rows, if their tags do not come in runs.
    pub(crate) fn new(
        snapshot: Arc<dyn TableSnapshot>,
        schema: SchemaRef,
        mut read: TableRead,
        manner: Manner,
        slicing: Option<Slicing>,
    ) -> Self {
        let schema = if manner.tag_runs { with_tag_runs(&schema) } else { schema };
        read.tag_runs = manner.tag_runs;
        if manner.whole_series && read.order == ReadOrder::Any {
            read.order = ReadOrder::SeriesThenTime;
        }
        let rest = slicing.map_or(Rest::All, |slicing| Rest::Slices(Slices::new(slicing)));
        let readers = Mutex::new(Readers { open: VecDeque::new(), rest, busy: 0, waiting: Vec::new() });
        Self { snapshot, schema, read, manner, readers }
    }

    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }

    /// A reader that nobody has. They are opened when the first is asked for, or slice by slice; the next slice only if the partition
    /// `may_open` it and no other is busy with this one.
    fn take(&self, is_busy: &mut bool, may_open: bool) -> Result<Taken<Box<dyn BatchReader>>, StoreError> {
        let mut readers = self.readers.lock();
        loop {
            if let Some(reader) = readers.open.pop_front() {
                readers.busy += usize::from(!*is_busy);
                *is_busy = true;
                return Ok(Taken::Is(reader));
            }
            let is_free = may_open && readers.busy == usize::from(*is_busy);
            let range = match &mut readers.rest {
                Rest::All => Some(self.read.range),
                Rest::Slices(_) if !is_free => return Ok(Taken::SliceEnd),
                Rest::Slices(slices) => slices.next(&*self.snapshot),
                Rest::Nothing => None,
            };
            if range.is_none() || matches!(readers.rest, Rest::All) {
                readers.rest = Rest::Nothing;
            }
            let Some(range) = range else {
                readers.wake_all();
                return Ok(Taken::End);
            };
            readers.open = self.snapshot.read(&TableRead { range, ..self.read.clone() })?.into();
            // Not before: whoever wakes up looks for readers and would wait for the lock.
            readers.wake_all();
        }
    }

    /// Says that a partition has given all that it read of this slice.
    fn release(&self, is_busy: &mut bool) {
        if std::mem::take(is_busy) {
            let mut readers = self.readers.lock();
            readers.busy -= 1;
            if readers.busy == 0 {
                readers.wake_all();
            }
        }
    }

    /// Ready when there is something to take, or the next slice can be opened.
    fn poll_slice(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut readers = self.readers.lock();
        if readers.busy == 0 || !readers.open.is_empty() {
            return Poll::Ready(());
        }
        if !readers.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            readers.waiting.push(context.waker().clone());
        }
        Poll::Pending
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

fn with_tag_runs(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &FieldRef| {
        if is_tag(field) {
            Arc::new(field.as_ref().clone().with_data_type(TAG_RUNS_TYPE.clone()))
        } else {
            Arc::clone(field)
        }
    };
    Arc::new(Schema::new_with_metadata(
        schema.fields().iter().map(field).collect::<Fields>(),
        schema.metadata().clone(),
    ))
}

/// Whether a column shows a tag.
pub(crate) fn is_tag(field: &Field) -> bool {
    is_of_kind(field, "tag")
}

/// How many columns show fields; their kind is the type.
pub(crate) fn field_count(schema: &Schema) -> usize {
    schema.fields().iter().filter(|column| !is_tag(column) && !is_ts(column)).count()
}

/// Whether a column shows the time.
pub(crate) fn is_ts(field: &Field) -> bool {
    is_of_kind(field, "ts")
}

fn is_of_kind(column: &Field, kind: &str) -> bool {
    column.metadata().get(COLUMN_KIND).is_some_and(|of_column| of_column == kind)
}

/// The rows of one partition, for a thread that may wait for the disk.
pub(crate) struct Rows {
    reading: Arc<Reading>,
    /// The one that was used last, if it has not ended.
    reader: Option<Box<dyn BatchReader>>,
    /// Rows that the limit still allows.
    left: usize,
    /// Whether the others count on this one to come to an end with this slice.
    is_busy: bool,
}

impl Rows {
    pub(crate) fn new(reading: Arc<Reading>) -> Self {
        let left = reading.read.limit.unwrap_or(usize::MAX);
        Self { reading, reader: None, left, is_busy: false }
    }

    /// The next ones, at least one; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.step(true)? {
            Taken::Is(batch) => Ok(Some(batch)),
            Taken::End => Ok(None),
            Taken::SliceEnd => {
                Err(DataFusionError::Internal("rows in slices, for an operator that reads by itself".into()))
            }
        }
    }

    /// The same, but not of the next slice unless it `may_open` that.
    fn step(&mut self, may_open: bool) -> Result<Taken<RecordBatch>> {
        while self.left > 0 {
            let taken = match self.reader.take() {
                Some(reader) => Taken::Is(reader),
                None => self.reading.take(&mut self.is_busy, may_open).map_err(crate::error::external)?,
            };
            let mut reader = match taken {
                Taken::Is(reader) => reader,
                Taken::SliceEnd => return Ok(Taken::SliceEnd),
                Taken::End => return Ok(Taken::End),
            };
            // What the store decodes it may keep for others.
            if let Some(batch) = scope::outside(|| reader.next()).map_err(crate::error::external)? {
                self.reader = Some(reader);
                let batch = self.reading.conform(batch)?;
                let batch = if batch.num_rows() > self.left { batch.slice(0, self.left) } else { batch };
                self.left -= batch.num_rows();
                return Ok(Taken::Is(batch));
            }
        }
        Ok(Taken::End)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.reading.release(&mut self.is_busy);
    }
}

/// Something that jobs work on, one after the other.
pub(crate) enum Jobs<T> {
    /// No job runs.
    Idle(T),
    Running(JoinHandle<Result<T>>),
    /// A job failed, or the last one's result was taken.
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

    /// What the running job leaves; the state is then [`Ended`](Self::Ended). `None` when no job runs.
    pub(crate) fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let Self::Running(job) = self else { return Poll::Ready(None) };
        let done = ready!(job.poll_unpin(context));
        *self = Self::Ended;
        let panicked = |panic| DataFusionError::Internal(format!("a read ended early: {panic}"));
        Poll::Ready(Some(done.map_err(panicked).flatten()))
    }
}

/// The rows of one partition.
pub(crate) struct RowStream {
    schema: SchemaRef,
    jobs: Jobs<Ahead>,
    batches: VecDeque<RecordBatch>,
    jobs_done: usize,
    dropped: Arc<AtomicBool>,
    metrics: BaselineMetrics,
}

/// What a job reads into.
struct Ahead {
    rows: Rows,
    batches: VecDeque<RecordBatch>,
    /// Whether there are no more in this slice.
    is_at_slice_end: bool,
    /// Whether there are no more.
    ended: bool,
}

impl RowStream {
    pub(crate) fn new(reading: Arc<Reading>, metrics: BaselineMetrics) -> Self {
        let schema = Arc::clone(&reading.schema);
        let ahead = Ahead {
            rows: Rows::new(reading),
            batches: VecDeque::new(),
            is_at_slice_end: false,
            ended: false,
        };
        let (batches, dropped) = (VecDeque::new(), Arc::default());
        Self { schema, jobs: Jobs::Idle(ahead), batches, jobs_done: 0, dropped, metrics }
    }

    /// A slice is opened only when the operator above has taken all rows of the one before: it then knows whether it wants more.
    fn start_job(&mut self, may_open: bool) {
        // The first job ends with its first batch: that may be all that anybody wants.
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
                let Rows { reading, is_busy, .. } = &mut ahead.rows;
                reading.release(is_busy);
                ready!(reading.poll_slice(context));
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

impl Ahead {
    /// Reads until there are enough rows or no more.
    fn read(mut self, rows_max: usize, mut may_open: bool, dropped: &AtomicBool) -> Result<Self> {
        let (mut rows, mut bytes) = (0, 0);
        self.is_at_slice_end = false;
        while rows < rows_max && bytes < JOB_BYTES && !dropped.load(Ordering::Relaxed) {
            let batch = match self.rows.step(may_open)? {
                Taken::Is(batch) => batch,
                Taken::SliceEnd => {
                    self.is_at_slice_end = true;
                    break;
                }
                Taken::End => {
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
