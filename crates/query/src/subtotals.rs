//! ROLLUP, CUBE and GROUPING SETS put NULL into the keys that a row is not grouped by.
//!
//! The library forgets that where a key is constant below, as with `WHERE device = 'bus-1' GROUP BY ROLLUP (device)`: it takes the key
//! for constant above as well and leaves an ORDER BY out. So what is known of the rows below is not told to such an aggregation.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    Statistics,
};

/// Puts a [`SubtotalInput`] below aggregations that make subtotals. It comes before sorts are put in and left out.
#[derive(Debug)]
pub(crate) struct KeepSubtotalsApart;

impl PhysicalOptimizerRule for KeepSubtotalsApart {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let apart = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<AggregateExec>() {
            Some(aggregate) if !aggregate.group_expr().is_single() => {
                let input = Arc::new(SubtotalInput::over(Arc::clone(aggregate.input())));
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                node.replace_children(vec![input], options).map(Transformed::yes)
            }
            _ => Ok(Transformed::no(node)),
        };
        plan.transform_up(apart).data()
    }

    fn name(&self) -> &str {
        "keep_subtotals_apart"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes rows on and tells nothing of them.
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

    fn with_input(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::over(children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input))))
    }
}

impl DisplayAs for SubtotalInput {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubtotalInput")
    }
}

impl ExecutionPlan for SubtotalInput {
    fn name(&self) -> &str {
        "SubtotalInput"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
        Ok(self.with_input(children))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
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
