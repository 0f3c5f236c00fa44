//! How the stages of an aggregation over runs follow each other.
//!
//! The library divides the states of the first stage by a hash of their groups, so that each thread of the last stage
//! has groups of its own. That pays for many groups. A table's runs are few, and how few at most is known before
//! anything is read, so one thread puts them together sooner than they are divided. Runs whose groups name a series need
//! no last stage at all. And where the library would read with one thread it has one stage, which looks up every row: here
//! it has two as well, if a last one is needed.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::physical_plan::{InputOrderMode, Partitioning};

use super::{RunAggregate, groups_are_runs};
use crate::rewriting::with_child;

/// Groups of which one thread puts all runs together.
const GROUPS_GATHERED_MAX: u64 = 64 * 1024;

/// Puts a [`RunAggregate`] in place of each first stage whose groups are runs of a table's rows.
pub(super) fn with_runs(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        let Some(stage) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let straight = with_child(&node, straight(stage.input())?)?;
        let stage = straight.downcast_ref::<AggregateExec>().filter(|stage| groups_are_runs(stage));
        let Some(stage) = stage else { return Ok(Transformed::no(node)) };
        let runs = RunAggregate::new(Arc::clone(&straight));
        Ok(if !is_only_one(stage) || runs.groups_are_whole()? {
            Transformed::yes(Arc::new(runs))
        } else if *stage.input_order_mode() == InputOrderMode::Linear {
            let first = like(stage, AggregateMode::Partial, Arc::clone(stage.input()))?;
            Transformed::yes(like(stage, AggregateMode::Final, RunAggregate::of(first))?)
        } else {
            Transformed::no(node)
        })
    };
    plan.transform_up(replace).data()
}

/// Whether a stage reads the rows of one partition and gives answers.
pub(super) fn is_only_one(stage: &AggregateExec) -> bool {
    matches!(stage.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned)
        && stage.input().output_partitioning().partition_count() == 1
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

/// Another stage of the same aggregation: over rows or, if it is the last of several, over states.
fn like(
    stage: &AggregateExec,
    mode: AggregateMode,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let reads_states =
        |mode: AggregateMode| matches!(mode, AggregateMode::Final | AggregateMode::FinalPartitioned);
    let groups = if reads_states(mode) && !reads_states(*stage.mode()) {
        stage.group_expr().as_final()
    } else {
        stage.group_expr().clone()
    };
    let (aggregates, filters) = (stage.aggr_expr().to_vec(), stage.filter_expr().to_vec());
    Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregates, filters, input, stage.input_schema())?))
}

/// Leaves out the last stage over runs, or the division of their states, where nothing above needs several partitions.
pub(super) fn with_short_ends(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(short) = short_end(&plan)? {
        return Ok(short);
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
    with_child(&plan, with_short_ends(Arc::clone(children[0]))?)
}

/// In place of a last stage over divided states.
fn short_end(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let last = plan.downcast_ref::<AggregateExec>();
    let Some(last) = last.filter(|last| *last.mode() == AggregateMode::FinalPartitioned) else {
        return Ok(None);
    };
    let divided = last.input().downcast_ref::<RepartitionExec>();
    let Some(divided) = divided.filter(|divided| matches!(divided.partitioning(), Partitioning::Hash(..)))
    else {
        return Ok(None);
    };
    let Some(runs) = divided.input().downcast_ref::<RunAggregate>() else { return Ok(None) };
    let is_unordered = *last.input_order_mode() == InputOrderMode::Linear;
    if !is_unordered || last.limit_options().is_some() {
        return Ok(None);
    }
    if runs.groups_are_whole()? {
        let first = runs.first();
        let only = like(first, AggregateMode::SinglePartitioned, Arc::clone(first.input()))?;
        return Ok(Some(RunAggregate::of(only)));
    }
    if runs.groups_max()?.is_none_or(|groups| groups > GROUPS_GATHERED_MAX) {
        return Ok(None);
    }
    let gathered = Arc::new(CoalescePartitionsExec::new(Arc::clone(divided.input())));
    Ok(Some(like(last, AggregateMode::Final, gathered)?))
}
