//! Rows that are watched on their way to an operator that does not watch them itself.
//!
//! A window over all rows of a partition keeps them until the partition ends. A join gives a row again for each of its matches, a
//! window gives the text of one row to all, and a list beside a text has the text again for each of its values: a batch of them
//! can be a thousand times larger than what it is made of. These operators account for none of that, so this rule puts an
//! operator below them that does.

mod watch;

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
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics};
use futures_util::{Stream, StreamExt};

use crate::gapfill::GapFillOperator;
use watch::{Seen, Watch};

/// Puts a [`WatchedRows`] below each operator that holds or repeats its input, and above each that makes many rows of few one that
/// lets others have their turn: else a query could not be ended as long as its rows last.
#[derive(Debug)]
pub(crate) struct WatchRows;

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
            if let Some(watches) = Watch::of(&*watched.data) {
                let over = |(input, watch): (&Arc<dyn ExecutionPlan>, Watch)| {
                    Arc::new(WatchedRows { input: Arc::clone(input), watch }) as Arc<dyn ExecutionPlan>
                };
                let inputs = watched.data.children().into_iter().zip(watches).map(over).collect();
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
        f.write_str("WatchedRows")
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
        let (watch, seen) = (self.watch.clone(), Seen::default());
        Ok(Box::pin(Watched { input, watch, seen, reservation, batch_rows }))
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
    seen: Seen,
    reservation: MemoryReservation,
    batch_rows: usize,
}

impl Watched {
    fn look_at(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.watch.is_held {
            self.reservation.try_grow(batch.get_array_memory_size())?;
        }
        Ok(self.watch.look_at(batch, &mut self.seen, self.batch_rows)?)
    }
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
