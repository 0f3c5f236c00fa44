//! Memory of operators that hold their whole input without saying so.
//!
//! A window over all rows of a partition keeps them until the partition ends. The operator does not account for it, so
//! this rule puts an operator below it that does.

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
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics};
use futures_util::{Stream, StreamExt};

use crate::gapfill::GapFillOperator;

/// Puts a [`HeldRows`] below each operator that holds its input, and above each that makes many rows of few one that
/// lets others have their turn: else a query could not be ended as long as its rows last.
#[derive(Debug)]
pub(crate) struct AccountHeldRows;

fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<UnnestExec>()
        || node.is::<GapFillOperator>()
}

impl PhysicalOptimizerRule for AccountHeldRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let account = |node: Arc<dyn ExecutionPlan>| {
            if multiplies(&*node) {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>));
            }
            let Some(window) = node.downcast_ref::<WindowAggExec>() else { return Ok(Transformed::no(node)) };
            let held = Arc::new(HeldRows { input: Arc::clone(window.input()) });
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            node.replace_children(vec![held], options).map(Transformed::yes)
        };
        plan.transform_up(account).data()
    }

    fn name(&self) -> &str {
        "account_held_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes rows on and accounts for them until all have been taken and the operator above is done.
#[derive(Debug)]
struct HeldRows {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for HeldRows {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldRows")
    }
}

impl ExecutionPlan for HeldRows {
    fn name(&self) -> &str {
        "HeldRows"
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
        Ok(Arc::new(Self { input }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("held rows").register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(Accounted { input, reservation }))
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

struct Accounted {
    input: SendableRecordBatchStream,
    reservation: MemoryReservation,
}

impl Stream for Accounted {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(batch))) = &next
            && let Err(error) = self.reservation.try_grow(batch.get_array_memory_size())
        {
            return Poll::Ready(Some(Err(error)));
        }
        next
    }
}

impl RecordBatchStream for Accounted {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
