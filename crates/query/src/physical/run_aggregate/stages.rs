//! A rule: arranges the stages of aggregations whose groups are runs.
//!
//! DataFusion spreads the states of the first stage by a hash of their groups, so that each thread of the last stage has groups of its own.
//! That pays for many groups. A table has few runs, and an upper limit is known before anything is read, so one thread merges them
//! in less time than it takes to spread them. Runs whose groups name a series need no last stage at all. Where DataFusion reads with one
//! thread, it has a single stage, which looks up the group of every row. This rule makes two stages of it if a last stage is needed.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{InputOrderMode, Partitioning};

use super::eligible::{groups_are_runs, is_only_stage};
use super::operator::RunAggregate;
use crate::physical::replace_input::with_input;
use crate::physical::unary::{UnaryOperator, downcast};

/// The number of groups up to which one thread merges all runs.
const GROUPS_MERGED_BY_ONE_MAX: u64 = 64 * 1024;

/// Puts run aggregations into a plan and leaves out stages that they do not need.
pub(in super::super) fn aggregate_runs(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    without_spare_stages(with_run_aggregates(plan)?)
}

/// Puts a [`RunAggregate`] in place of each first stage whose groups are runs of the rows of a table.
fn with_run_aggregates(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        let Some(stage) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let unspread = with_input(&node, without_repartition(stage.input())?)?;
        let stage = unspread.downcast_ref::<AggregateExec>().filter(|stage| groups_are_runs(stage));
        let Some(stage) = stage else { return Ok(Transformed::no(node)) };
        let runs = RunAggregate::new(Arc::clone(&unspread));
        Ok(if !is_only_stage(stage) || runs.groups_are_whole()? {
            Transformed::yes(runs.into_plan())
        } else if *stage.input_order_mode() == InputOrderMode::Linear {
            let first = stage_like(stage, AggregateMode::Partial, Arc::clone(stage.input()))?;
            Transformed::yes(stage_like(stage, AggregateMode::Final, RunAggregate::new(first).into_plan())?)
        } else {
            Transformed::no(node)
        })
    };
    plan.transform_up(replace).data()
}

/// Returns the input without the operator that spreads its batches over several threads, which would split runs.
fn without_repartition(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(spread) = plan.downcast_ref::<RepartitionExec>()
        && let Partitioning::RoundRobinBatch(_) = spread.partitioning()
    {
        return without_repartition(spread.input());
    }
    match plan.downcast_ref::<FilterExec>() {
        Some(filter) => with_input(plan, without_repartition(filter.input())?),
        None => Ok(Arc::clone(plan)),
    }
}

/// Returns another stage of the same aggregation, over rows or, for the last of several stages, over states.
fn stage_like(
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

/// Leaves out the last stage over runs, or the operator that spreads their states, where no operator above needs several partitions.
fn without_spare_stages(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(merged) = merged_runs(&plan)? {
        return Ok(merged);
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
    with_input(&plan, without_spare_stages(Arc::clone(children[0]))?)
}

/// Returns the replacement of a last stage over spread states of runs; `None` if `plan` is not such a stage or must stay.
fn merged_runs(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let last = plan.downcast_ref::<AggregateExec>();
    let Some(last) = last.filter(|last| *last.mode() == AggregateMode::FinalPartitioned) else {
        return Ok(None);
    };
    let spread = last.input().downcast_ref::<RepartitionExec>();
    let Some(spread) = spread.filter(|spread| matches!(spread.partitioning(), Partitioning::Hash(..))) else {
        return Ok(None);
    };
    let Some(runs) = downcast::<RunAggregate>(&**spread.input()) else { return Ok(None) };
    let is_unordered = *last.input_order_mode() == InputOrderMode::Linear;
    if !is_unordered || last.limit_options().is_some() {
        return Ok(None);
    }
    if runs.groups_are_whole()? {
        let first = runs.first();
        let only = stage_like(first, AggregateMode::SinglePartitioned, Arc::clone(first.input()))?;
        return Ok(Some(RunAggregate::new(only).into_plan()));
    }
    if runs.groups_max()?.is_none_or(|groups| groups > GROUPS_MERGED_BY_ONE_MAX) {
        return Ok(None);
    }
    let gathered = Arc::new(CoalescePartitionsExec::new(Arc::clone(spread.input())));
    Ok(Some(stage_like(last, AggregateMode::Final, gathered)?))
}
