//! Decides which stages of an aggregation can be run aggregations.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use store::table::TS_COLUMN;

use super::input::Input;
use crate::column_kind::is_tag;

/// Whether a stage reads rows, not states, and whether its groups are runs of the rows of a table.
pub(super) fn groups_are_runs(first: &AggregateExec) -> bool {
    let by = first.group_expr();
    let supported = first.aggr_expr().iter().all(|aggregate| aggregate.groups_accumulator_supported());
    let is_first_of_two = *first.mode() == AggregateMode::Partial;
    (is_first_of_two || is_only_stage(first))
        && by.is_single()
        && !by.is_empty()
        && supported
        && first.limit_options().is_none()
        && Input::of(first.input()).is_some()
        && by.expr().iter().all(|(group, _)| changes_slowly(group, &first.input().schema()))
}

/// Whether a value depends on tags and on steps of time only.
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

/// Whether a stage reads the rows of one partition and returns the results of the aggregates.
pub(super) fn is_only_stage(stage: &AggregateExec) -> bool {
    matches!(stage.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned)
        && stage.input().output_partitioning().partition_count() == 1
}
