//! A rule: an aggregation with ROLLUP, CUBE or GROUPING SETS learns nothing about the rows below it.
//!
//! Such an aggregation writes NULL into the keys that a row is not grouped by. DataFusion forgets this where a key is constant below,
//! as with `WHERE device = 'bus-1' GROUP BY ROLLUP (device)`: it takes the key for constant above as well and leaves an ORDER BY out. So this
//! rule puts an operator below the aggregation that hides orders and constants.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};

use super::replace_input::with_input;
use super::unary::UnaryOperator;

/// Puts a [`SubtotalInput`] below each aggregation that makes subtotals. The rule runs before DataFusion's rules add and remove sorts.
pub(super) fn keep_subtotals_apart(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let apart = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<AggregateExec>() {
        Some(aggregate) if !aggregate.group_expr().is_single() => {
            let input = SubtotalInput::over(Arc::clone(aggregate.input())).into_plan();
            with_input(&node, input).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    };
    plan.transform_up(apart).data()
}

/// Passes rows on and hides their order and their constants.
#[derive(Debug)]
struct SubtotalInput {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SubtotalInput {
    fn over(input: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(partitions),
            input.pipeline_behavior(),
            input.boundedness(),
        ));
        Self { input, properties }
    }
}

impl UnaryOperator for SubtotalInput {
    const NAME: &'static str = "SubtotalInput";

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>, _options: ReplaceChildrenOptions) -> Result<Self> {
        Ok(Self::over(input))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn keeps_statistics(&self) -> bool {
        true
    }
}
