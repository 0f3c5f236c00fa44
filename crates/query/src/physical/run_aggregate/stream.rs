//! Reads rows, finds their runs and updates the states of each run, in jobs on the threads for blocking work.
//!
//! The same thread decodes and aggregates a batch. It wakes the operator above only when there is a batch of runs to return.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::concat;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::RecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::evaluate_many;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count};
use futures_util::Stream;
use model::limits;

use super::boundaries::BatchRuns;
use super::group_merger::GroupMerger;
use super::groups::{Group, GroupValues};
use super::input::FilteredRows;
use super::run_states::RunStates;
use crate::physical::scan::Jobs;
use crate::scope;

/// Bytes of states after which they go to the last stage, however few runs there are.
const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) type Expressions = Vec<Arc<dyn PhysicalExpr>>;

/// Returns the states of runs, or the results of complete groups.
pub(super) struct RunStream {
    schema: SchemaRef,
    jobs: Jobs<Work>,
    dropped: Arc<AtomicBool>,
    metrics: BaselineMetrics,
}

/// The state of the jobs.
pub(super) struct Work {
    pub(super) rows: FilteredRows,
    /// Whether there are no more rows.
    pub(super) ended: bool,
    pub(super) groups: Vec<Group>,
    /// The arguments of each aggregate.
    pub(super) arguments: Vec<Expressions>,
    pub(super) filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    pub(super) runs: Runs,
    /// Merges the runs of a group, if no later stage does.
    pub(super) merger: Option<GroupMerger>,
    /// The number of runs after which they are returned.
    pub(super) runs_max: usize,
    /// The batch to return next.
    pub(super) ready: Option<RecordBatch>,
    pub(super) schema: SchemaRef,
    pub(super) memory: MemoryReservation,
    pub(super) rows_read: Count,
    pub(super) time: datafusion::physical_plan::metrics::Time,
}

/// Runs that have not been returned yet.
#[derive(Default)]
pub(super) struct Runs {
    /// The states of each aggregate.
    states: Vec<Box<dyn RunStates>>,
    count: usize,
    /// For each batch: the groups of its runs.
    groups: Vec<Vec<ArrayRef>>,
    groups_bytes: usize,
}

impl Runs {
    /// Begins without runs.
    pub(super) fn of(states: Vec<Box<dyn RunStates>>) -> Self {
        Self { states, ..Self::default() }
    }

    /// Adds the rows of a batch, at least one.
    fn add(
        &mut self,
        groups: &[GroupValues],
        rows: usize,
        arguments: &[Vec<ArrayRef>],
        filters: &[Option<BooleanArray>],
    ) -> Result<()> {
        let runs = BatchRuns::of(groups, rows, self.count)?;
        let first_rows = runs.first_rows();
        let of_runs: Vec<_> = groups.iter().map(|group| group.of_runs(&first_rows)).collect::<Result<_>>()?;
        self.groups_bytes += of_runs.iter().map(|array| array.get_array_memory_size()).sum::<usize>();
        self.groups.push(of_runs);
        for ((states, arguments), filter) in self.states.iter_mut().zip(arguments).zip(filters) {
            states.add(arguments, filter.as_ref(), &runs)?;
        }
        self.count = runs.total();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.groups_bytes + self.states.iter().map(|states| states.size()).sum::<usize>()
    }

    /// Whether the runs should be returned. Without runs they cannot be, however much memory the states hold.
    fn are_enough(&self, runs_max: usize) -> bool {
        self.count > 0 && (self.count >= runs_max || self.bytes() > STATE_BYTES_MAX)
    }

    /// Returns the groups and the states of all runs so far and forgets them; `None` if there are none.
    fn take(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        if self.count == 0 {
            return Ok(None);
        }
        let batches = std::mem::take(&mut self.groups);
        self.groups_bytes = 0;
        let mut columns = Vec::new();
        for group in 0..batches[0].len() {
            let pieces: Vec<_> = batches.iter().map(|batch| batch[group].as_ref()).collect();
            columns.push(concat(&pieces)?);
        }
        for states in &mut self.states {
            columns.extend(states.take()?);
        }
        self.count = 0;
        Ok(Some(columns))
    }
}

impl Work {
    /// Reads until there are enough runs or rows, or no more rows.
    fn go_on(mut self, dropped: &AtomicBool) -> Result<Self> {
        let time = self.time.clone();
        let _timer = time.timer();
        let mut rows = 0;
        while rows < limits::QUERY_GROUPED_ROWS_PER_JOB && !dropped.load(Ordering::Relaxed) {
            scope::wait_for_memory(dropped);
            scope::checkpoint()?;
            let Some((batch, read)) = self.rows.next()? else {
                self.ended = true;
                break;
            };
            rows += read;
            self.rows_read.add(read);
            if batch.num_rows() > 0 {
                self.add(&batch)?;
                self.memory.try_resize(self.bytes())?;
            }
            if self.runs.are_enough(self.runs_max) {
                break;
            }
        }
        if self.ended || self.runs.are_enough(self.runs_max) {
            self.ready = self.take_batch()?;
            self.memory.try_resize(self.bytes())?;
        }
        Ok(self)
    }

    /// Returns the runs so far, or the complete groups; `None` if there are none.
    fn take_batch(&mut self) -> Result<Option<RecordBatch>> {
        let runs = self.runs.take()?;
        let columns = match (&mut self.merger, runs) {
            (None, runs) => runs,
            (Some(merger), Some(runs)) => merger.add(&runs, self.ended)?,
            (Some(merger), None) => merger.finish()?,
        };
        columns.map(|columns| Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)).transpose()
    }

    fn bytes(&self) -> usize {
        self.runs.bytes() + self.merger.as_ref().map_or(0, GroupMerger::size)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let groups: Vec<_> = self.groups.iter().map(|group| group.values(batch)).collect::<Result<_>>()?;
        let arguments = evaluate_many(&self.arguments, batch)?;
        let filter = |filter: &Arc<dyn PhysicalExpr>| {
            let array = filter.evaluate(batch)?.into_array(batch.num_rows())?;
            let filter = array.as_boolean_opt().cloned();
            filter.ok_or_else(|| {
                DataFusionError::Internal("a filter of an aggregate is not a condition".into())
            })
        };
        let filters: Vec<_> =
            self.filters.iter().map(|one| one.as_ref().map(filter).transpose()).collect::<Result<_>>()?;
        self.runs.add(&groups, batch.num_rows(), &arguments, &filters)
    }
}

impl RunStream {
    pub(super) fn new(work: Work, metrics: BaselineMetrics) -> Self {
        let schema = Arc::clone(&work.schema);
        Self { schema, jobs: Jobs::Idle(work), dropped: Arc::default(), metrics }
    }

    fn start_job(&mut self) {
        let dropped = Arc::clone(&self.dropped);
        self.jobs.start(move |work| work.go_on(&dropped));
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            self.start_job();
            let Some(mut work) = ready!(self.jobs.poll_done(context)).transpose()? else {
                return Poll::Ready(None);
            };
            let ready = work.ready.take();
            if !work.ended {
                // The next job runs while the operator above takes these runs.
                self.jobs = Jobs::Idle(work);
                self.start_job();
            }
            if ready.is_some() {
                return Poll::Ready(ready.map(Ok));
            }
        }
    }
}

impl Stream for RunStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for RunStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for RunStream {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    /// Counts rows and allocates much memory.
    struct Greedy(Vec<i64>);

    impl RunStates for Greedy {
        fn add(&mut self, _: &[ArrayRef], _: Option<&BooleanArray>, runs: &BatchRuns) -> Result<()> {
            self.0.extend(runs.ranges().map(|rows| rows.len() as i64));
            Ok(())
        }

        fn take(&mut self) -> Result<Vec<ArrayRef>> {
            Ok(vec![Arc::new(Int64Array::from(std::mem::take(&mut self.0)))])
        }

        fn size(&self) -> usize {
            2 * STATE_BYTES_MAX
        }
    }

    #[test]
    fn large_runs_are_returned_early_and_once() {
        let mut runs = Runs::of(vec![Box::new(Greedy(Vec::new()))]);
        assert!(!runs.are_enough(1_000));
        let groups = |groups: &[i64]| vec![GroupValues::Rows(Arc::new(Int64Array::from(groups.to_vec())))];
        runs.add(&groups(&[7, 7, 8]), 3, &[Vec::new()], &[None]).unwrap();
        runs.add(&groups(&[8, 7, 7, 7]), 4, &[Vec::new()], &[None]).unwrap();
        assert!(runs.are_enough(1_000));
        let taken = runs.take().unwrap().unwrap();
        let column =
            |index: usize| taken[index].as_primitive::<arrow_array::types::Int64Type>().values().to_vec();
        assert_eq!((column(0), column(1)), (vec![7, 8, 8, 7], vec![2, 1, 1, 3]));
        assert!(!runs.are_enough(1_000));
        assert!(runs.take().unwrap().is_none());
    }
}
