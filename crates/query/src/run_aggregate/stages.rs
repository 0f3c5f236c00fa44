//! How the stages of an aggregation over runs follow each other.
//!
//! The library divides the states of the first stage by a hash of their groups, so that each thread of the last stage
//! has groups of its own. That pays for many groups. A table's runs are few, and how few at most is known before
//! anything is read, so one thread puts them together sooner than they are divided. And where the library would read
//! with one thread it has one stage, which looks up every row: here it has two as well.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{InputOrderMode, Partitioning};

use super::{RunAggregate, groups_are_runs};

/// Groups of which one thread puts all runs together.
const GROUPS_GATHERED_MAX: u64 = 64 * 1024;

/// Puts a [`RunAggregate`] in place of each first stage whose groups are runs of a table's rows.
pub(super) fn with_runs(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        let Some(stage) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let straight = with_child(&node, straight(stage.input())?)?;
        let stage = straight.downcast_ref::<AggregateExec>().filter(|stage| groups_are_runs(stage));
        let Some(stage) = stage else { return Ok(Transformed::no(node)) };
        Ok(match stage.mode() {
            AggregateMode::Partial => Transformed::yes(RunAggregate::of(straight)),
            AggregateMode::Single if *stage.input_order_mode() == InputOrderMode::Linear => {
                let first = like(stage, AggregateMode::Partial, Arc::clone(stage.input()))?;
                Transformed::yes(like(stage, AggregateMode::Final, RunAggregate::of(first))?)
            }
            _ => Transformed::no(node),
        })
    };
    plan.transform_up(replace).data()
}

/// The same rows without being dealt to several threads, which tears runs apart.
fn straight(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(dealt) = plan.downcast_ref::<RepartitionExec>()
        && let Partitioning::RoundRobinBatch(_) = dealt.partitioning()
    {
        return straight(dealt.input());
    }
    match plan.downcast_ref::<FilterExec>() {
        Some(filter) => with_child(plan, straight(filter.input())?),
        None => Ok(Arc::clone(plan)),
    }
}

/// An operator over another input; itself if it is the same.
fn with_child(
    plan: &Arc<dyn ExecutionPlan>,
    child: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if Arc::ptr_eq(&child, plan.children()[0]) {
        return Ok(Arc::clone(plan));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![child], options)
}

/// The stage of the same aggregation over rows or, in its last stage, over states.
fn like(
    stage: &AggregateExec,
    mode: AggregateMode,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let groups = match mode {
        AggregateMode::Partial => stage.group_expr().clone(),
        _ => stage.group_expr().as_final(),
    };
    let (aggregates, filters) = (stage.aggr_expr().to_vec(), stage.filter_expr().to_vec());
    Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregates, filters, input, stage.input_schema())?))
}

/// Gathers the states of few runs instead of dividing them, where nothing above needs several partitions.
pub(super) fn gather_few(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(gathered) = gathered(&plan)? {
        return Ok(gathered);
    }
    let takes_any_number = plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<SortExec>();
    let children = plan.children();
    if !takes_any_number || children.len() != 1 {
        return Ok(plan);
    }
    with_child(&plan, gather_few(Arc::clone(children[0]))?)
}

/// The last stage over gathered states, in place of one over divided states.
fn gathered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let last = plan.downcast_ref::<AggregateExec>();
    let Some(last) = last.filter(|last| *last.mode() == AggregateMode::FinalPartitioned) else {
        return Ok(None);
    };
    let divided = last.input().downcast_ref::<RepartitionExec>();
    let Some(divided) = divided.filter(|divided| matches!(divided.partitioning(), Partitioning::Hash(..)))
    else {
        return Ok(None);
    };
    let Some(first) = divided.input().downcast_ref::<RunAggregate>() else { return Ok(None) };
    let is_unordered = *last.input_order_mode() == InputOrderMode::Linear;
    if !is_unordered
        || last.limit_options().is_some()
        || first.groups_max()?.is_none_or(|groups| groups > GROUPS_GATHERED_MAX)
    {
        return Ok(None);
    }
    let gathered = Arc::new(CoalescePartitionsExec::new(Arc::clone(divided.input())));
    let (aggregates, filters) = (last.aggr_expr().to_vec(), last.filter_expr().to_vec());
    let groups = last.group_expr().clone();
    let schema = last.input_schema();
    let last = AggregateExec::try_new(AggregateMode::Final, groups, aggregates, filters, gathered, schema)?;
    Ok(Some(Arc::new(last)))
}
