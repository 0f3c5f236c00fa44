//! Caches the operators of a plan that runs again.
//!
//! For a small query, to choose the operators takes longer than to run them. The choice depends on the rows of a table only through the
//! scan: about how many rows there are, in which order they can be read, by how many threads. So the operators are used again over new
//! scans, as long as the new scans are like the old ones. The cache holds neither snapshots nor rows.

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

use super::run_aggregate::RunAggregate;
use super::scan::{ScanFingerprint, StoreScan};
use super::unary::downcast;
use crate::tables::OpenTables;

/// Operators without scans, and the fingerprints of the scans.
#[derive(Debug)]
pub(crate) struct CachedOperators {
    /// The operators over empty tables in place of the scans.
    operators: Arc<dyn ExecutionPlan>,
    /// One for each scan, in the order of a walk from the top.
    scans: Vec<ScanFingerprint>,
}

impl CachedOperators {
    /// Keeps the operators that were chosen for a plan of `tables` tables; `None` if they can run only once.
    pub(crate) fn of(operators: &Arc<dyn ExecutionPlan>, tables: usize) -> Result<Option<Self>> {
        if !can_run_again(operators) {
            return Ok(None);
        }
        let mut scans = Vec::with_capacity(tables);
        let operators = with_leaves(operators, &mut |leaf| {
            scans.extend(leaf.downcast_ref::<StoreScan>().map(StoreScan::fingerprint).transpose()?.flatten());
            Ok(Some(Arc::new(EmptyExec::new(leaf.schema()))))
        })?;
        // Operators that were chosen for an empty table may not read it at all.
        Ok(operators.filter(|_| scans.len() == tables).map(|operators| Self { operators, scans }))
    }

    /// Returns the operators over the tables of a query; `None` if other operators may suit those tables better.
    pub(crate) fn over(&self, tables: &OpenTables) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let mut scans = self.scans.iter();
        with_leaves(&self.operators, &mut |_| {
            let missing = || DataFusionError::Internal("a scan was not kept".into());
            let fingerprint = scans.next().ok_or_else(missing)?;
            Ok(StoreScan::like(fingerprint, tables)?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>))
        })
    }
}

/// Whether an operator keeps nothing of an execution once its inputs are replaced, and whether all rows come from tables of the store.
/// A dynamic filter that an operator shares with others while it runs would stay.
fn can_run_again(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let is_known = operator.is::<StoreScan>()
        || downcast::<RunAggregate>(&**operator).is_some()
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
        && operator.children().into_iter().all(can_run_again)
}

type Leaf<'a> = dyn FnMut(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> + 'a;

/// Returns the operators, as new, over other leaves with the same properties; `None` if `leaf` returns none.
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
    // Other operators begin with new metrics. Those of a sort would continue counting.
    Ok(Some(if operator.is::<SortExec>() { operator.reset_state()? } else { operator }))
}
