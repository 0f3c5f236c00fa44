//! Grouping rows that come in runs: the first stage of an aggregation over a table.
//!
//! The store gives the rows of a series one after the other, in the order of time. Those of one group (a device, five
//! minutes of a device) therefore follow each other, and whether a row begins another group is seen by comparing it with
//! the row before. Looking each row's group up in a hash table costs several times as much, most of it for tags, which
//! are text. What comes out is the state of the aggregates for each run; the last stage puts together the runs of one
//! group, wherever they come from. Its answer is the same for rows in any order, only its work is more then.
//!
//! Where groups name the series of their rows, rows are read series by series, all runs of a group are neighbours, and
//! there is no last stage.

mod boundaries;
mod edges;
mod ending;
mod groups;
mod input;
mod stages;
mod states;
mod stream;

use std::fmt;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, aggregate_expressions};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use store::table::TS_COLUMN;

use ending::Ending;
use groups::Group;
use input::{Input, looks_at_tags};
use states::states_of;
use stream::{Expressions, RunStream, Runs, Work};

use crate::functions::date_bin::Steps;
use crate::reading::{Manner, is_tag};

/// Puts a [`RunAggregate`] in place of the first stage of an aggregation whose groups are runs of a table's rows.
#[derive(Debug)]
pub(crate) struct AggregateRuns;

impl PhysicalOptimizerRule for AggregateRuns {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        stages::with_short_ends(stages::with_runs(plan)?)
    }

    fn name(&self) -> &str {
        "aggregate_runs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator is such a stage.
pub(crate) fn aggregates_runs(operator: &dyn ExecutionPlan) -> bool {
    operator.is::<RunAggregate>()
}

/// Whether the groups of a stage that reads rows, and not states, are runs of a table's rows.
fn groups_are_runs(first: &AggregateExec) -> bool {
    let by = first.group_expr();
    let supported = first.aggr_expr().iter().all(|aggregate| aggregate.groups_accumulator_supported());
    let is_first_of_two = *first.mode() == AggregateMode::Partial;
    (is_first_of_two || stages::is_only_one(first))
        && by.is_single()
        && !by.is_empty()
        && supported
        && first.limit_options().is_none()
        && Input::of(first.input()).is_some()
        && by.expr().iter().all(|(group, _)| changes_slowly(group, &first.input().schema()))
}

/// Whether a value depends on nothing but tags and, in steps, on the time.
fn changes_slowly(group: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if is_volatile(group) {
        return false;
    }
    let is_tag = |column: &Column| is_tag(schema.field(column.index()));
    let is_ts = |column: &Column| schema.field(column.index()).name() == TS_COLUMN;
    match group.downcast_ref::<Column>() {
        Some(column) => is_tag(column),
        None => collect_columns(group).iter().all(|column| is_tag(column) || is_ts(column)),
    }
}

/// See above. The operator that it stands in for knows all about the groups and the shape of the answer.
#[derive(Debug)]
struct RunAggregate {
    first: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunAggregate {
    fn new(first: Arc<dyn ExecutionPlan>) -> Self {
        Self { first, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// In place of the first stage of an aggregation.
    fn of(first: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(first))
    }

    /// How many groups there can be; `None` if that is not known.
    fn groups_max(&self) -> Result<Option<u64>> {
        let groups = self.first().group_expr();
        let Some(input) = Input::of(self.first().input()) else { return Ok(None) };
        let mut count = input.scan.series_count()?;
        for (group, _) in groups.expr() {
            // Whatever is made of tags has at most one value for each series.
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

    /// Whether the runs of each group are neighbours once whole series are read: the groups have all tags, and steps of time at
    /// most.
    fn groups_are_whole(&self) -> Result<bool> {
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

    /// Whether there is no later stage.
    fn gives_answers(&self) -> bool {
        *self.first().mode() != AggregateMode::Partial
    }

    fn first(&self) -> &AggregateExec {
        self.first.downcast_ref().expect("BUG: it is made of an aggregation only")
    }

    /// Whether tags are looked at by groups of one tag only, where it is enough to see them once for each run.
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

    fn over(
        &self,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.first).replace_children(children, options)?)))
    }
}

impl DisplayAs for RunAggregate {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")?;
        self.first().fmt_as(format, f)
    }
}

impl ExecutionPlan for RunAggregate {
    fn name(&self) -> &str {
        "RunAggregate"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.first.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.first().input()]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.first.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children, options)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
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
        let gives_answers = self.gives_answers();
        let manner =
            Manner { tag_runs: self.takes_tag_runs(&input, &arguments), whole_series: gives_answers };
        let groups = first.group_expr().expr();
        let ending = gives_answers.then(|| Ending::of(groups.len(), first.aggr_expr())).transpose()?;
        let rows = first.input().schema();
        let work = Work {
            rows: input.rows(partition, manner),
            ended: false,
            groups: groups.iter().map(|(group, _)| Group::new(group, &rows)).collect::<Result<_>>()?,
            arguments,
            filters,
            runs: Runs::of(states),
            ending,
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
