//! A rule: a scan below `ORDER BY ts DESC LIMIT 100` over many series reads the newest rows and leaves out the others.
//!
//! Over a few series the store merges rows in the order of time. Over many, DataFusion sorts them and keeps the best hundred; its
//! sort publishes the condition that a further row must satisfy. So the scan reads slices of time, begins at the end where
//! the sort begins, and stops before the first slice in which no row can satisfy the condition. Slices grow, so that few of them cover
//! the whole table. A filter between sort and scan changes nothing: the sort does not count the rows that the filter drops, and
//! the scan reads on.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use store::Order;

use super::replace_input::{with_input, with_scan};

/// Tells scans below sorts with a limit from which end of time they read.
pub(super) fn read_in_slices(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let slice = |node: Arc<dyn ExecutionPlan>| {
        let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
        let descending = sort.expr().first().options.descending;
        let order = if descending { Order::Descending } else { Order::Ascending };
        let sliced = with_scan(sort.input(), &streams_rows, &|scan| scan.in_slices(sort, order))?;
        Ok(match sliced {
            Some(input) => Transformed::yes(with_input(&node, without_batching(input)?)?),
            None => Transformed::no(node),
        })
    };
    plan.transform_up(slice).data()
}

/// Whether an operator returns each row without waiting for later ones.
fn streams_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.fetch().is_none())
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some_and(|all| all.fetch().is_none())
        || plan
            .downcast_ref::<RepartitionExec>()
            .is_some_and(|spread| matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_)))
}

/// Makes filters return rows at once instead of collecting a full batch. The sort's condition takes only rows into account that have
/// reached the sort.
fn without_batching(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let unbatched = |node: Arc<dyn ExecutionPlan>| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
        Ok(Transformed::yes(Arc::new(filter.with_batch_size(1)?) as Arc<dyn ExecutionPlan>))
    };
    plan.transform_up(unbatched).data()
}
