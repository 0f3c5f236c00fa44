//! Turns the logical node of gap filling into its operator.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::operator::GapFillOperator;
use crate::gapfill::GapFill;
use crate::physical::unary::UnaryOperator;

/// Chooses the operator of a [`GapFill`] node.
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
        Ok(Some(GapFillOperator::over(Arc::clone(input), Arc::new(node.shape.clone()), schema)?.into_plan()))
    }
}
