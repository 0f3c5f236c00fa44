//! Plans of which one operator is another.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use crate::scan::StoreScan;

/// An operator over another input; itself if it is the same.
pub(crate) fn with_child(
    plan: &Arc<dyn ExecutionPlan>,
    child: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if Arc::ptr_eq(&child, plan.children()[0]) {
        return Ok(Arc::clone(plan));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![child], options)
}

/// A plan over what `other` makes of its scan; `None` if that is nothing, or if an operator above the scan is not one that
/// `may_be_above` it, each of which has one input.
pub(crate) fn with_scan(
    plan: &Arc<dyn ExecutionPlan>,
    may_be_above: &dyn Fn(&Arc<dyn ExecutionPlan>) -> bool,
    other: &dyn Fn(&StoreScan) -> Result<Option<StoreScan>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<StoreScan>() {
        return Ok(other(scan)?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>));
    }
    if !may_be_above(plan) {
        return Ok(None);
    }
    let input = with_scan(plan.children()[0], may_be_above, other)?;
    input.map(|input| with_child(plan, input)).transpose()
}
