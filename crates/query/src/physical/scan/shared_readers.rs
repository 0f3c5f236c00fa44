//! The readers of one execution of a scan, which its partitions share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::Result;
use parking_lot::Mutex;
use store::table::TAG_RUNS_TYPE;
use store::{BatchReader, ReadOrder, StoreError, TableRead, TableSnapshot};

use super::slices::{Slices, Slicing};
use crate::column_kind::is_tag;

/// How an operator reads the rows of a scan, in addition to the properties of the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadMode {
    /// Tag columns are run-end encoded.
    pub(crate) tag_runs: bool,
    /// Each series comes as a whole: its rows follow each other by time, in one partition. A scan with an order of its own keeps that.
    pub(crate) whole_series: bool,
}

/// The readers of one execution. Partitions take them one by one, so that all end at about the same time.
pub(crate) struct SharedReaders {
    snapshot: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
    read: TableRead,
    mode: ReadMode,
    readers: Mutex<Readers>,
}

/// The readers that no partition has taken yet.
struct Readers {
    open: VecDeque<Box<dyn BatchReader>>,
    unread: Unread,
    /// Partitions that read rows of this slice, or whose rows the operator above has not taken yet.
    busy: usize,
    /// Partitions that wait for the next slice.
    waiting: Vec<Waker>,
}

impl Readers {
    fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

/// The next item of a scan that may stop at the end of a slice.
pub(super) enum Next<T> {
    Item(T),
    /// The slice is over. The caller decides whether the next one is opened.
    SliceEnd,
    End,
}

/// The part of the scan for which no reader is open yet.
enum Unread {
    All,
    Slices(Slices),
    Nothing,
}

impl SharedReaders {
    /// `schema` is that of the rows without run-end encoding.
    pub(crate) fn new(
        snapshot: Arc<dyn TableSnapshot>,
        schema: SchemaRef,
        mut read: TableRead,
        mode: ReadMode,
        slicing: Option<Slicing>,
    ) -> Self {
        let schema = if mode.tag_runs { with_tag_runs(&schema) } else { schema };
        read.tag_runs = mode.tag_runs;
        if mode.whole_series && read.order == ReadOrder::Any {
            read.order = ReadOrder::SeriesThenTime;
        }
        let unread = slicing.map_or(Unread::All, |slicing| Unread::Slices(Slices::new(slicing)));
        let readers = Mutex::new(Readers { open: VecDeque::new(), unread, busy: 0, waiting: Vec::new() });
        Self { snapshot, schema, read, mode, readers }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows one partition returns at most.
    pub(super) fn limit(&self) -> Option<usize> {
        self.read.limit
    }

    pub(crate) fn mode(&self) -> ReadMode {
        self.mode
    }

    /// Takes a reader for a partition. The first call opens all readers, or those of the first slice. The next slice is opened only if
    /// the partition `may_open` it and no other partition is busy with this one.
    pub(super) fn take(
        &self,
        is_busy: &mut bool,
        may_open: bool,
    ) -> Result<Next<Box<dyn BatchReader>>, StoreError> {
        let mut readers = self.readers.lock();
        loop {
            if let Some(reader) = readers.open.pop_front() {
                readers.busy += usize::from(!*is_busy);
                *is_busy = true;
                return Ok(Next::Item(reader));
            }
            let is_free = may_open && readers.busy == usize::from(*is_busy);
            let range = match &mut readers.unread {
                Unread::All => Some(self.read.range),
                Unread::Slices(_) if !is_free => return Ok(Next::SliceEnd),
                Unread::Slices(slices) => slices.next(&*self.snapshot),
                Unread::Nothing => None,
            };
            if range.is_none() || matches!(readers.unread, Unread::All) {
                readers.unread = Unread::Nothing;
            }
            let Some(range) = range else {
                readers.wake_all();
                return Ok(Next::End);
            };
            readers.open = self.snapshot.read(&TableRead { range, ..self.read.clone() })?.into();
            // A woken partition takes a reader and would wait for the lock if it were woken earlier.
            readers.wake_all();
        }
    }

    /// Reports that the operator above has taken all rows that a partition read of this slice.
    pub(super) fn release(&self, is_busy: &mut bool) {
        if std::mem::take(is_busy) {
            let mut readers = self.readers.lock();
            readers.busy -= 1;
            if readers.busy == 0 {
                readers.wake_all();
            }
        }
    }

    /// Ready when there is a reader to take, or when the next slice can be opened.
    pub(super) fn poll_slice(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut readers = self.readers.lock();
        if readers.busy == 0 || !readers.open.is_empty() {
            return Poll::Ready(());
        }
        if !readers.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            readers.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Gives a batch the schema of the scan.
    pub(super) fn conform(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, columns, rows) = batch.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl fmt::Debug for SharedReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReaders").field("read", &self.read).finish_non_exhaustive()
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
