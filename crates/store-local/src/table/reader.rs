//! Readers: they take tasks from a shared list, merge rows, and make arrays of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use parking_lot::Mutex;
use store::{BatchReader, Order, ReadOrder, StoreError};

use super::gather;
use super::merge::{Merge, MergeSlice};
use super::order::RowOrder;
use super::plan::{ReadPlan, Task};

/// The tasks of a read, in the order in which readers take them.
pub(crate) type Tasks = Arc<Mutex<VecDeque<Task>>>;

/// Executes one task after the other, and gives the rows as arrays.
pub(crate) struct TaskReader {
    plan: Arc<ReadPlan>,
    tasks: Tasks,
    current: Option<Current>,
    slice: MergeSlice,
}

enum Current {
    Count(u64),
    Merge(Box<Merge>),
}

/// The columns of a batch, and the number of its rows.
pub(crate) type Arrays = (Vec<ArrayRef>, usize);

impl TaskReader {
    pub(crate) fn new(plan: Arc<ReadPlan>, tasks: Tasks) -> Self {
        Self { plan, tasks, current: None, slice: MergeSlice::default() }
    }

    /// The next rows, at most `rows_max`; fewer where that saves a copy.
    pub(crate) fn next(&mut self, rows_max: usize) -> Result<Option<Arrays>, StoreError> {
        self.slice.clear();
        let mut counted = 0;
        loop {
            let rows = self.slice.rows + counted;
            // A batch that is full enough ends with its task, which saves a copy.
            let is_enough = rows > rows_max / 2 || self.slice.is_wide(&self.plan, RowOrder::Series);
            if rows >= rows_max || (self.current.is_none() && is_enough) {
                break;
            }
            match &mut self.current {
                None => match self.tasks.lock().pop_front() {
                    None => break,
                    Some(Task::Count(rows)) => self.current = Some(Current::Count(rows)),
                    Some(Task::Merge(order, sources)) => {
                        self.current = Some(Current::Merge(Box::new(Merge::new(order, sources))));
                    }
                },
                Some(Current::Count(left)) => {
                    let count = (rows_max - rows).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    counted += count;
                    *left -= count as u64;
                    if *left == 0 {
                        self.current = None;
                    }
                }
                Some(Current::Merge(merge)) => {
                    if !merge.fill(&self.plan, rows_max - counted, &mut self.slice)? {
                        self.current = None;
                    } else {
                        break;
                    }
                }
            }
        }
        let rows = self.slice.rows + counted;
        if rows == 0 {
            return Ok(None);
        }
        let backward = self.plan.order == ReadOrder::Time(Order::Descending);
        Ok(Some((gather::arrays(&self.plan, &self.slice, backward)?, rows)))
    }

    /// The series of the last rows, if the plan needs them.
    pub(super) fn series(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        gather::series(&self.slice)
    }
}

/// A reader of the contract.
pub(super) struct LocalReader {
    pub(super) reader: TaskReader,
    pub(super) schema: SchemaRef,
    pub(super) batch_rows: usize,
    /// The number of rows that are still wanted.
    pub(super) left: usize,
}

impl BatchReader for LocalReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some((arrays, rows)) = self.reader.next(self.batch_rows.min(self.left))? else {
            return Ok(None);
        };
        self.left -= rows;
        Ok(Some(batch(&self.schema, arrays, rows)))
    }
}

/// Makes a batch of the columns that a plan for this schema gives.
pub(super) fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
    batch.expect("BUG: the columns fit the schema")
}
