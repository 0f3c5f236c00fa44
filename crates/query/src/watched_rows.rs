//! Rows that are watched on their way to an operator that does not watch them itself.
//!
//! A window over all rows of a partition keeps them until the partition ends. A join gives a row again for each of its matches, a
//! window gives the text of one row to all, and a list beside a text has the text again for each of its values: a batch of them
//! can be a thousand times larger than what it is made of. These operators account for none of that, so this rule puts an
//! operator below them that does.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics};
use futures_util::{Stream, StreamExt};
use model::limits::QUERY_REPEATED_BYTES_MAX;

use crate::QueryError;
use crate::batch_rows::{has_copied_values, is_copied};
use crate::gapfill::GapFillOperator;
use crate::value_sizes::{value_bytes, value_elements};

/// Puts a [`WatchedRows`] below each operator that holds or repeats its input, and above each that makes many rows of few one that
/// lets others have their turn: else a query could not be ended as long as its rows last.
#[derive(Debug)]
pub(crate) struct WatchRows;

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Watch {
    /// They are held: all of them count as memory.
    Held,
    /// They are held, and the text of each may be given to all.
    HeldAndRepeated,
    /// Each may be repeated as often as a batch has rows.
    Repeated,
    /// Each is repeated for each value of its lists in these columns.
    Lists(Vec<usize>),
}

/// How an operator treats the rows below it.
fn watch_for(node: &dyn ExecutionPlan) -> Option<Watch> {
    let input_has_copied = || node.children().iter().any(|input| has_copied_values(&input.schema()));
    if node.is::<WindowAggExec>() {
        return Some(if input_has_copied() { Watch::HeldAndRepeated } else { Watch::Held });
    }
    if !input_has_copied() {
        return None;
    }
    if let Some(unnest) = node.downcast_ref::<UnnestExec>() {
        let lists = unnest.list_column_indices().iter().map(|list| list.index_in_input_schema);
        return Some(Watch::Lists(lists.collect()));
    }
    let repeats = node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<BoundedWindowAggExec>();
    repeats.then_some(Watch::Repeated)
}

fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<UnnestExec>()
        || node.is::<GapFillOperator>()
}

impl PhysicalOptimizerRule for WatchRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let watch = |node: Arc<dyn ExecutionPlan>| {
            let mut watched = Transformed::no(node);
            if let Some(watch) = watch_for(&*watched.data) {
                let over = |input: &Arc<dyn ExecutionPlan>| {
                    Arc::new(WatchedRows { input: Arc::clone(input), watch: watch.clone() })
                        as Arc<dyn ExecutionPlan>
                };
                let inputs = watched.data.children().into_iter().map(over).collect();
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
                watched = Transformed::yes(watched.data.replace_children(inputs, options)?);
            }
            if multiplies(&*watched.data) {
                watched = Transformed::yes(Arc::new(CooperativeExec::new(watched.data)));
            }
            Ok(watched)
        };
        plan.transform_up(watch).data()
    }

    fn name(&self) -> &str {
        "watch_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes rows on. Those that are held count as memory until all have been taken and the operator above is done.
#[derive(Debug)]
struct WatchedRows {
    input: Arc<dyn ExecutionPlan>,
    watch: Watch,
}

impl DisplayAs for WatchedRows {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchedRows: {:?}", self.watch)
    }
}

impl ExecutionPlan for WatchedRows {
    fn name(&self) -> &str {
        "WatchedRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, watch: self.watch.clone() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, watch: self.watch.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("held rows").register(context.memory_pool());
        let batch_rows = context.session_config().batch_size();
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(Watched {
            input,
            watch: self.watch.clone(),
            reservation,
            batch_rows,
            rows: 0,
            longest: 0,
        }))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

struct Watched {
    input: SendableRecordBatchStream,
    watch: Watch,
    reservation: MemoryReservation,
    batch_rows: usize,
    /// Rows so far, and bytes of the largest.
    rows: usize,
    longest: u64,
}

impl Watched {
    fn look_at(&mut self, batch: &RecordBatch) -> Result<()> {
        if matches!(self.watch, Watch::Held | Watch::HeldAndRepeated) {
            self.reservation.try_grow(batch.get_array_memory_size())?;
        }
        self.rows += batch.num_rows();
        let longest = match &self.watch {
            Watch::Held => return Ok(()),
            Watch::HeldAndRepeated | Watch::Repeated => longest_row(batch),
            Watch::Lists(lists) => longest_with_lists(batch, lists),
        };
        self.longest = self.longest.max(longest);
        let rows = match &self.watch {
            Watch::HeldAndRepeated => self.rows,
            Watch::Repeated => self.batch_rows,
            _ => 1,
        };
        if self.longest.saturating_mul(rows as u64) > QUERY_REPEATED_BYTES_MAX as u64 {
            return Err(QueryError::OverLimit {
                what: "the text of one row that a join, a window or a list repeats for others",
                limit: format!("{QUERY_REPEATED_BYTES_MAX} bytes"),
                remedy: "leave long text out of it, or shorten it with left(...)",
            }
            .into());
        }
        Ok(())
    }
}

/// Bytes of the largest row that are copied when it is repeated.
fn longest_row(batch: &RecordBatch) -> u64 {
    copied_bytes(batch, &[]).into_iter().max().unwrap_or(0)
}

/// The same, as often as lists in these columns have values; they themselves are not repeated.
fn longest_with_lists(batch: &RecordBatch, lists: &[usize]) -> u64 {
    let mut times = vec![0; batch.num_rows()];
    for list in lists.iter().filter_map(|list| batch.columns().get(*list)) {
        times.iter_mut().zip(value_elements(list)).for_each(|(most, elements)| *most = elements.max(*most));
    }
    let bytes = copied_bytes(batch, lists);
    bytes.into_iter().zip(times).map(|(bytes, times)| bytes.saturating_mul(times)).max().unwrap_or(0)
}

fn copied_bytes(batch: &RecordBatch, without: &[usize]) -> Vec<u64> {
    let mut bytes = vec![0u64; batch.num_rows()];
    for (index, column) in batch.columns().iter().enumerate() {
        if is_copied(column.data_type()) && !without.contains(&index) {
            bytes.iter_mut().zip(value_bytes(column)).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
    bytes
}

impl Stream for Watched {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(batch))) = &next
            && let Err(error) = self.look_at(batch)
        {
            return Poll::Ready(Some(Err(error)));
        }
        next
    }
}

impl RecordBatchStream for Watched {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
