//! Puts [`MemoryAccounting`] into a plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;

use super::operator::MemoryAccounting;
use super::repeated_values::InputUse;
use crate::physical::gap_fill::GapFillOperator;
use crate::physical::unary::{UnaryOperator, downcast};

/// Puts [`MemoryAccounting`] below each operator that holds or repeats its input. Puts an operator that yields to other tasks above each
/// operator that makes many rows of few: without it a query could not be ended while its rows last.
pub(in super::super) fn account_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let account = |node: Arc<dyn ExecutionPlan>| {
        let mut accounted = Transformed::no(node);
        if let Some(uses) = InputUse::of_inputs(&*accounted.data) {
            let over = |(input, input_use): (&Arc<dyn ExecutionPlan>, InputUse)| {
                MemoryAccounting::new(Arc::clone(input), input_use).into_plan()
            };
            let inputs = accounted.data.children().into_iter().zip(uses).map(over).collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            accounted = Transformed::yes(accounted.data.replace_children(inputs, options)?);
        }
        if multiplies_rows(&*accounted.data) {
            accounted = Transformed::yes(Arc::new(CooperativeExec::new(accounted.data)));
        }
        Ok(accounted)
    };
    plan.transform_up(account).data()
}

fn multiplies_rows(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<UnnestExec>()
        || downcast::<GapFillOperator>(node).is_some()
}
