//! Builds a plan again over another input.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use super::scan::StoreScan;

/// Returns the operator over another input; the operator itself if the input is the same.
pub(super) fn with_input(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if Arc::ptr_eq(&input, plan.children()[0]) {
        return Ok(Arc::clone(plan));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![input], options)
}

/// Returns the plan with its scan replaced by the result of `replace`. Returns `None` if that is `None`, or if an operator above the
/// scan fails `may_be_above`. Operators that pass it have one input.
pub(super) fn with_scan(
    plan: &Arc<dyn ExecutionPlan>,
    may_be_above: &dyn Fn(&Arc<dyn ExecutionPlan>) -> bool,
    replace: &dyn Fn(&StoreScan) -> Result<Option<StoreScan>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<StoreScan>() {
        return Ok(replace(scan)?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>));
    }
    if !may_be_above(plan) {
        return Ok(None);
    }
    let input = with_scan(plan.children()[0], may_be_above, replace)?;
    input.map(|input| with_input(plan, input)).transpose()
}
