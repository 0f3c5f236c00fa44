//! Operators of a plan that comes again.
//!
//! To choose them takes longer than to answer a small question. What they are depends on the rows of a table only through
//! the scan: about how many there are, in which order they can be read, by how many threads. So they are used again, over
//! scans of the tables as they are now, as long as these are such as they were chosen for. Kept are no snapshot and no
//! rows.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use crate::run_aggregate::aggregates_runs;
use crate::scan::{KeptScan, StoreScan};
use crate::tables::OpenTables;

/// See above.
#[derive(Debug)]
pub(crate) struct KeptOperators {
    /// With tables that have no rows in place of the scans.
    operators: Arc<dyn ExecutionPlan>,
    /// From the first to the last, as they are come by from the top.
    scans: Vec<KeptScan>,
}

impl KeptOperators {
    /// Of operators that were chosen for a plan with so many tables; `None` if they serve once.
    pub(crate) fn of(operators: &Arc<dyn ExecutionPlan>, tables: usize) -> Result<Option<Self>> {
        if !can_serve_again(operators) {
            return Ok(None);
        }
        let mut scans = Vec::with_capacity(tables);
        let operators = with_leaves(operators, &mut |leaf| {
            scans.extend(leaf.downcast_ref::<StoreScan>().map(StoreScan::kept).transpose()?.flatten());
            Ok(Some(Arc::new(EmptyExec::new(leaf.schema()))))
        })?;
        // What was chosen for a table without rows may not read it at all.
        Ok(operators.filter(|_| scans.len() == tables).map(|operators| Self { operators, scans }))
    }

    /// The operators over the tables of a query; `None` if others may suit them.
    pub(crate) fn over(&self, tables: &OpenTables) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let mut scans = self.scans.iter();
        with_leaves(&self.operators, &mut |_| {
            let kept = scans.next().ok_or_else(|| DataFusionError::Internal("a scan was not kept".into()))?;
            Ok(kept.scan(tables)?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>))
        })
    }
}

/// Whether nothing of an execution stays in the operators once their inputs are replaced, and all their rows are those of
/// tables. A filter that an operator gives to others while it runs would stay.
fn can_serve_again(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let is_known = operator.is::<StoreScan>()
        || aggregates_runs(&**operator)
        || operator.is::<AggregateExec>()
        || operator.is::<CoalescePartitionsExec>()
        || operator.is::<FilterExec>()
        || operator.is::<GlobalLimitExec>()
        || operator.is::<LocalLimitExec>()
        || operator.is::<ProjectionExec>()
        || operator.is::<RepartitionExec>()
        || operator.is::<SortExec>()
        || operator.is::<SortPreservingMergeExec>();
    is_known
        && operator.dynamic_expressions_produced().is_empty()
        && operator.children().into_iter().all(can_serve_again)
}

type Leaf<'a> = dyn FnMut(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> + 'a;

/// The same operators, as new, over other leaves with the same properties; `None` if there is none for a leaf.
fn with_leaves(
    operator: &Arc<dyn ExecutionPlan>,
    leaf: &mut Leaf<'_>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let before = operator.children();
    if before.is_empty() {
        return leaf(operator);
    }
    let mut children = Vec::with_capacity(before.len());
    for child in before {
        let Some(child) = with_leaves(child, leaf)? else { return Ok(None) };
        children.push(child);
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let operator = Arc::clone(operator).replace_children(children, options)?;
    // All others begin with counters of their own; those of a sort would grow with each execution.
    Ok(Some(if operator.is::<SortExec>() { operator.reset_state()? } else { operator }))
}
