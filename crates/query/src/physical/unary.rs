//! Implements DataFusion's [`ExecutionPlan`] once for all our operators with one input.
//!
//! An operator implements [`UnaryOperator`], which has only the parts that differ between operators. [`Unary`] makes a plan node of
//! it. [`downcast`] finds the operator again in a plan.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};

/// Visits an expression of an operator.
pub(crate) type Visit<'a> = dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion> + 'a;

/// An operator with one input. The defaults are those of [`ExecutionPlan`].
pub(crate) trait UnaryOperator: fmt::Debug + Send + Sync + Sized + 'static {
    /// The name of the operator in plans.
    const NAME: &'static str;

    fn input(&self) -> &Arc<dyn ExecutionPlan>;

    /// Schema, order, constants and partitions of the rows that the operator returns.
    fn properties(&self) -> &Arc<PlanProperties>;

    /// Returns the operator over another input.
    fn with_input(&self, input: Arc<dyn ExecutionPlan>, options: ReplaceChildrenOptions) -> Result<Self>;

    /// Starts the operator for one partition.
    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;

    /// How the number of output rows relates to the number of input rows.
    fn cardinality_effect(&self) -> CardinalityEffect;

    /// Writes the operator for EXPLAIN.
    fn describe(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)
    }

    /// How the rows of the input must be spread over partitions.
    fn input_distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    /// The order that the rows of the input must have.
    fn input_ordering(&self) -> Option<OrderingRequirements> {
        None
    }

    /// Whether the output has the order of the input.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Whether the output has the statistics of the input.
    fn keeps_statistics(&self) -> bool {
        false
    }

    /// Whether DataFusion may repartition the input to use more threads.
    fn benefits_from_partitioning(&self) -> bool {
        !matches!(self.input_distribution(), Distribution::SinglePartition)
    }

    fn visit_expressions(&self, _visit: &mut Visit<'_>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        None
    }

    /// The columns of the output.
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties().eq_properties.schema())
    }

    /// Makes a plan node of the operator.
    fn into_plan(self) -> Arc<dyn ExecutionPlan> {
        Arc::new(Unary(self))
    }
}

/// The plan node of a [`UnaryOperator`].
#[derive(Debug)]
pub(crate) struct Unary<T>(T);

/// Returns the operator if the plan node is one of this type.
pub(crate) fn downcast<T: UnaryOperator>(node: &dyn ExecutionPlan) -> Option<&T> {
    node.downcast_ref::<Unary<T>>().map(|unary| &unary.0)
}

impl<T: UnaryOperator> Unary<T> {
    fn over(
        &self,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(self.0.input()));
        Ok(self.0.with_input(input, options)?.into_plan())
    }
}

impl<T: UnaryOperator> DisplayAs for Unary<T> {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(format, f)
    }
}

impl<T: UnaryOperator> ExecutionPlan for Unary<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![self.0.input_distribution()])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.0.input_ordering()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.0.keeps_order()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![self.0.benefits_from_partitioning()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.0.input()]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.visit_expressions(visit)
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
        self.0.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![if self.0.keeps_statistics() { ChildStats::At(partition) } else { ChildStats::Skip }]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if self.0.keeps_statistics() {
            return Ok(Arc::clone(&inputs[0]));
        }
        Ok(Arc::new(Statistics::new_unknown(&self.0.schema())))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.0.cardinality_effect()
    }
}
