//! The operator of gap filling in a logical plan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::DataType;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::{GapFillOperator, Shape};

/// Gives a row for each bucket of each value of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GapFill {
    input: LogicalPlan,
    shape: Shape,
    schema: DFSchemaRef,
}

impl GapFill {
    /// The columns are those of the input, but those that made rows leave open may be NULL.
    pub(super) fn new(input: LogicalPlan, shape: Shape) -> Result<Self> {
        let types = input.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        Self::with_types(input, shape, types)
    }

    fn with_types(input: LogicalPlan, shape: Shape, types: Vec<DataType>) -> Result<Self> {
        let keeps = |index: usize| shape.keys.contains(&index) || index == shape.time;
        let fields =
            input.schema().iter().zip(types).enumerate().map(|(index, ((table, field), data_type))| {
                let nullable = field.is_nullable() || !keeps(index);
                let field = field.as_ref().clone().with_data_type(data_type).with_nullable(nullable);
                (table.cloned(), Arc::new(field))
            });
        let schema = DFSchema::new_with_metadata(fields.collect(), input.schema().metadata().clone())?;
        Ok(Self { input, shape, schema: Arc::new(schema) })
    }
}

impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let order = self.input.partial_cmp(&other.input)?.then(self.shape.partial_cmp(&other.shape)?);
        (order != Ordering::Equal || self == other).then_some(order)
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// Columns are known by their place.
    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// A condition on another key decides about all rows of its values; one on anything else about rows that are to be
    /// made as well.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let fields = self.schema.fields().iter().enumerate();
        let others = fields.filter(|(index, _)| !self.shape.keys.contains(index));
        others.map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GapFill: ")?;
        self.shape.describe(self.schema.as_arrow(), f)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.into_iter().next();
        let input = input.ok_or_else(|| DataFusionError::Internal("gap filling of nothing".into()))?;
        // The optimiser takes the key for one of nanoseconds when it puts `date_bin` there, which it is not.
        let types = self.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Self::with_types(input, self.shape.clone(), types)
    }
}

/// Chooses the operator.
#[derive(Debug)]
pub(crate) struct PlanGapFill;

#[async_trait]
impl ExtensionPlanner for PlanGapFill {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<GapFill>(), physical_inputs) else {
            return Ok(None);
        };
        let schema = Arc::clone(node.schema.inner());
        Ok(Some(Arc::new(GapFillOperator::new(Arc::clone(input), node.shape.clone(), schema)?)))
    }
}
