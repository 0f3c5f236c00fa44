//! Grouping rows that come in runs: the first stage of an aggregation over a table.
//!
//! The store gives the rows of a series one after the other, in the order of time. Those of one group (a device, five
//! minutes of a device) therefore follow each other, and whether a row begins another group is seen by comparing it with
//! the row before. Looking each row's group up in a hash table costs several times as much, most of it for tags, which
//! are text. What comes out is the state of the aggregates for each run; the last stage puts together the runs of one
//! group, wherever they come from. Its answer is the same for rows in any order, only its work is more then.

mod boundaries;
mod edges;
mod states;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use datafusion::arrow::compute::{concat, take};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, aggregate_expressions, evaluate_many,
};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::{Stream, StreamExt};
use store::table::{COLUMN_KIND, TS_COLUMN};

use boundaries::BatchRuns;
use states::{RunStates, states_of};

use crate::scan::StoreScan;

/// Bytes of states after which they are given to the last stage, however few runs they are.
const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Puts a [`RunAggregate`] in place of the first stage of an aggregation whose groups are runs of a table's rows.
#[derive(Debug)]
pub(crate) struct AggregateRuns;

impl PhysicalOptimizerRule for AggregateRuns {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replace = |node: Arc<dyn ExecutionPlan>| {
            let first = node.downcast_ref::<AggregateExec>().filter(|first| groups_are_runs(first));
            Ok(match first {
                Some(_) => Transformed::yes(Arc::new(RunAggregate::new(node)) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(replace).data()
    }

    fn name(&self) -> &str {
        "aggregate_runs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn groups_are_runs(first: &AggregateExec) -> bool {
    let by = first.group_expr();
    let supported = first.aggr_expr().iter().all(|aggregate| aggregate.groups_accumulator_supported());
    *first.mode() == AggregateMode::Partial
        && by.is_single()
        && !by.is_empty()
        && supported
        && first.limit_options().is_none()
        && is_table(first.input())
        && by.expr().iter().all(|(group, _)| changes_slowly(group, &first.input().schema()))
}

/// Whether the rows are those of a table in the order in which the store gives them.
fn is_table(input: &Arc<dyn ExecutionPlan>) -> bool {
    match input.downcast_ref::<FilterExec>() {
        Some(filter) => is_table(filter.input()),
        None => input.is::<StoreScan>(),
    }
}

/// Whether a value depends on nothing but tags and, in steps, on the time.
fn changes_slowly(group: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let is_tag = |column: &Column| {
        schema.field(column.index()).metadata().get(COLUMN_KIND).is_some_and(|kind| kind == "tag")
    };
    let is_ts = |column: &Column| schema.field(column.index()).name() == TS_COLUMN;
    match group.downcast_ref::<Column>() {
        Some(column) => is_tag(column),
        None => collect_columns(group).iter().all(|column| is_tag(column) || is_ts(column)),
    }
}

/// See above. The operator that it stands in for knows all about the groups and the shape of the answer.
#[derive(Debug)]
struct RunAggregate {
    first: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunAggregate {
    fn new(first: Arc<dyn ExecutionPlan>) -> Self {
        Self { first, metrics: ExecutionPlanMetricsSet::new() }
    }

    fn first(&self) -> &AggregateExec {
        self.first.downcast_ref().expect("BUG: it is made of an aggregation only")
    }

    fn over(
        &self,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.first).replace_children(children, options)?)))
    }
}

impl DisplayAs for RunAggregate {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")?;
        self.first().fmt_as(format, f)
    }
}

impl ExecutionPlan for RunAggregate {
    fn name(&self) -> &str {
        "RunAggregate"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.first.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.first().input()]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.first.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children, options)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let first = self.first();
        let groups = first.group_expr().expr().iter().map(|(group, _)| Arc::clone(group)).collect();
        let filters = first.filter_expr().to_vec();
        let mut arguments = aggregate_expressions(first.aggr_expr(), first.mode(), 0)?;
        let mut states = Vec::with_capacity(arguments.len());
        for ((aggregate, filter), arguments) in first.aggr_expr().iter().zip(&filters).zip(&mut arguments) {
            let (of_aggregate, needs_arguments) =
                states_of(aggregate, filter.is_some(), &first.input().schema())?;
            states.push(of_aggregate);
            if !needs_arguments {
                arguments.clear();
            }
        }
        Ok(Box::pin(RunStream {
            input: first.input().execute(partition, Arc::clone(&context))?,
            schema: self.schema(),
            groups: vec![groups],
            arguments,
            filters,
            runs: Runs { states, ..Runs::default() },
            runs_max: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

type Expressions = Vec<Arc<dyn PhysicalExpr>>;

struct RunStream {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Those of the groups, as the only element.
    groups: Vec<Expressions>,
    /// By aggregate.
    arguments: Vec<Expressions>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    runs: Runs,
    runs_max: usize,
    metrics: BaselineMetrics,
}

/// Runs that have been seen and not been given on.
#[derive(Default)]
struct Runs {
    /// By aggregate.
    states: Vec<Box<dyn RunStates>>,
    count: usize,
    /// The groups' values for the runs of each batch.
    groups: Vec<Vec<ArrayRef>>,
}

impl Runs {
    /// Adds the rows of a batch, which has at least one.
    fn add(
        &mut self,
        groups: &[ArrayRef],
        arguments: &[Vec<ArrayRef>],
        filters: &[Option<BooleanArray>],
    ) -> Result<()> {
        let runs = BatchRuns::of(groups, self.count)?;
        let first_rows = runs.first_rows();
        let of_runs = groups.iter().map(|group| Ok(take(group, &first_rows, None)?));
        self.groups.push(of_runs.collect::<Result<_>>()?);
        for ((states, arguments), filter) in self.states.iter_mut().zip(arguments).zip(filters) {
            states.add(arguments, filter.as_ref(), &runs)?;
        }
        self.count = runs.total();
        Ok(())
    }

    /// Whether they should be given on. Nothing can be when there are none, whatever room the states keep.
    fn are_enough(&self, runs_max: usize) -> bool {
        let bytes = || self.states.iter().map(|states| states.size()).sum::<usize>();
        self.count > 0 && (self.count >= runs_max || bytes() > STATE_BYTES_MAX)
    }

    /// What is known of all runs so far, which are then forgotten; `None` if there are none.
    fn take(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        if self.count == 0 {
            return Ok(None);
        }
        let batches = std::mem::take(&mut self.groups);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for group in 0..batches[0].len() {
            let pieces: Vec<_> = batches.iter().map(|batch| batch[group].as_ref()).collect();
            columns.push(concat(&pieces)?);
        }
        for states in &mut self.states {
            columns.extend(states.take()?);
        }
        self.count = 0;
        Ok(Some(RecordBatch::try_new(Arc::clone(schema), columns)?))
    }
}

impl RunStream {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let groups = evaluate_many(&self.groups, batch)?.swap_remove(0);
        let arguments = evaluate_many(&self.arguments, batch)?;
        let filter = |filter: &Arc<dyn PhysicalExpr>| {
            let array = filter.evaluate(batch)?.into_array(batch.num_rows())?;
            let filter = array.as_boolean_opt().cloned();
            filter.ok_or_else(|| DataFusionError::Internal("a filter of an aggregate is no condition".into()))
        };
        let filters: Vec<_> =
            self.filters.iter().map(|one| one.as_ref().map(filter).transpose()).collect::<Result<_>>()?;
        self.runs.add(&groups, &arguments, &filters)
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if self.runs.are_enough(self.runs_max) {
                return Poll::Ready(self.runs.take(&self.schema).transpose());
            }
            match ready!(self.input.poll_next_unpin(context)) {
                None => return Poll::Ready(self.runs.take(&self.schema).transpose()),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    let time = self.metrics.elapsed_compute().clone();
                    let _timer = time.timer();
                    if let Err(error) = self.add(&batch) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
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

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    /// Counts rows and keeps much room.
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
    fn runs_that_hold_much_are_given_on_and_then_none_are_left_to_give() {
        let schema = Arc::new(Schema::new(vec![
            arrow_schema::Field::new("group", arrow_schema::DataType::Int64, false),
            arrow_schema::Field::new("rows", arrow_schema::DataType::Int64, false),
        ]));
        let mut runs = Runs { states: vec![Box::new(Greedy(Vec::new()))], ..Runs::default() };
        assert!(!runs.are_enough(1_000));
        let groups = |groups: &[i64]| vec![Arc::new(Int64Array::from(groups.to_vec())) as ArrayRef];
        runs.add(&groups(&[7, 7, 8]), &[Vec::new()], &[None]).unwrap();
        runs.add(&groups(&[8, 7, 7, 7]), &[Vec::new()], &[None]).unwrap();
        assert!(runs.are_enough(1_000));
        let batch = runs.take(&schema).unwrap().unwrap();
        let column = |index: usize| {
            batch.column(index).as_primitive::<arrow_array::types::Int64Type>().values().to_vec()
        };
        assert_eq!((column(0), column(1)), (vec![7, 8, 8, 7], vec![2, 1, 1, 3]));
        assert!(!runs.are_enough(1));
        assert!(runs.take(&schema).unwrap().is_none());
    }
}
