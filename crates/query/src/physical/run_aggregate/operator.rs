//! The operator of run aggregation.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, aggregate_expressions};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use store::table::TS_COLUMN;

use super::group_merger::GroupMerger;
use super::groups::{self, Group};
use super::input::{Input, looks_at_tags};
use super::states::states_of;
use super::stream::{Expressions, RunStream, Runs, Work};
use crate::functions::date_bin::Steps;
use crate::physical::scan::ReadMode;
use crate::physical::unary::{UnaryOperator, Visit};

/// Aggregates runs in place of a stage of DataFusion. That stage still describes the groups, the aggregates and the output.
#[derive(Debug)]
pub(in super::super) struct RunAggregate {
    /// The replaced stage, an [`AggregateExec`].
    replaced: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunAggregate {
    /// Replaces a stage, which is an [`AggregateExec`].
    pub(super) fn new(replaced: Arc<dyn ExecutionPlan>) -> Self {
        Self { replaced, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Returns an upper limit of the number of groups; `None` if none is known.
    pub(super) fn groups_max(&self) -> Result<Option<u64>> {
        let groups = self.first().group_expr();
        let Some(input) = Input::of(self.first().input()) else { return Ok(None) };
        let mut count = input.scan.series_count()?;
        for (group, _) in groups.expr() {
            // An expression of tags has at most one value for each series.
            let looks_at_time = collect_columns(group).iter().any(|column| column.name() == TS_COLUMN);
            match (Steps::of_column(group), input.scan.time_range()) {
                (_, None) => return Ok(Some(0)),
                (Some((_, steps)), Some(range)) => {
                    let steps = steps.count_max(range.start.micros(), range.end.micros());
                    count = count.saturating_mul(steps);
                }
                (None, _) if looks_at_time => return Ok(None),
                (None, _) => {}
            }
        }
        Ok(Some(count))
    }

    /// Whether the runs of each group are neighbours if whole series are read: all tags are among the groups, and all other groups are
    /// steps of time.
    pub(super) fn groups_are_whole(&self) -> Result<bool> {
        let Some(input) = Input::of(self.first().input()) else { return Ok(false) };
        let groups = || self.first().group_expr().expr().iter().map(|(group, _)| group);
        let is_there = |tag: &str| {
            groups().any(|group| group.downcast_ref::<Column>().is_some_and(|column| column.name() == tag))
        };
        let is_steady = |group: &Arc<dyn PhysicalExpr>| {
            Steps::of_column(group).is_some()
                || collect_columns(group).iter().all(|column| column.name() != TS_COLUMN)
        };
        Ok(input.scan.tag_columns().all(is_there)
            && groups().all(is_steady)
            && input.scan.can_give_whole_series()?)
    }

    /// Whether no later stage follows.
    fn is_last_stage(&self) -> bool {
        *self.first().mode() != AggregateMode::Partial
    }

    /// The replaced stage.
    pub(super) fn first(&self) -> &AggregateExec {
        self.replaced.downcast_ref().expect("BUG: it is made of an aggregation only")
    }

    /// Whether only groups that depend on a single tag use tags. Such a group is computed once for each run.
    fn takes_tag_runs(&self, input: &Input<'_>, arguments: &[Expressions]) -> bool {
        let first = self.first();
        let schema = first.input().schema();
        let groups = first.group_expr().expr().iter().map(|(group, _)| group);
        let mut others = groups
            .filter(|group| groups::tag_of(group, &schema).is_none())
            .chain(arguments.iter().flatten())
            .chain(first.filter_expr().iter().flatten());
        !input.filters_look_at_tags() && !others.any(|other| looks_at_tags(other, first.input()))
    }
}

impl UnaryOperator for RunAggregate {
    const NAME: &'static str = "RunAggregate";

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.first().input()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.replaced.properties()
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>, options: ReplaceChildrenOptions) -> Result<Self> {
        Ok(Self::new(Arc::clone(&self.replaced).replace_children(vec![input], options)?))
    }

    fn describe(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")?;
        self.first().fmt_as(format, f)
    }

    fn visit_expressions(&self, visit: &mut Visit<'_>) -> Result<TreeNodeRecursion> {
        self.replaced.apply_expressions(visit)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let first = self.first();
        let Some(input) = Input::of(first.input()) else {
            return Err(DataFusionError::Internal("an aggregation of runs is not over a table".into()));
        };
        let filters = first.filter_expr().to_vec();
        let mut arguments = aggregate_expressions(first.aggr_expr(), first.mode(), 0)?;
        let mut states = Vec::with_capacity(arguments.len());
        for ((aggregate, filter), arguments) in first.aggr_expr().iter().zip(&filters).zip(&mut arguments) {
            let (of_aggregate, needs_arguments) =
                states_of(aggregate, filter.is_some(), &first.input().schema())?;
            states.push(of_aggregate);
            if !needs_arguments {
                arguments.clear();
            }
        }
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let is_last_stage = self.is_last_stage();
        let mode =
            ReadMode { tag_runs: self.takes_tag_runs(&input, &arguments), whole_series: is_last_stage };
        let groups = first.group_expr().expr();
        let merger = is_last_stage.then(|| GroupMerger::of(groups.len(), first.aggr_expr())).transpose()?;
        let rows = first.input().schema();
        let work = Work {
            rows: input.rows(partition, mode),
            ended: false,
            groups: groups.iter().map(|(group, _)| Group::new(group, &rows)).collect::<Result<_>>()?,
            arguments,
            filters,
            runs: Runs::of(states),
            merger,
            runs_max: context.session_config().batch_size(),
            ready: None,
            schema: self.schema(),
            memory: MemoryConsumer::new("RunAggregate").register(context.memory_pool()),
            rows_read: input.scan.baseline(partition).output_rows().clone(),
            time: metrics.elapsed_compute().clone(),
        };
        Ok(Box::pin(RunStream::new(work, metrics)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
