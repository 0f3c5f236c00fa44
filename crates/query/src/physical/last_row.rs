//! A rule: a scan below an aggregation that needs the last row of each series reads no other rows.
//!
//! `last(x, ts)` of every device needs one row of each series; `first(x, ts)` needs the row at the other end of time. The store finds that
//! row without reading the others, so the rule tells the scan at which end to read. The store still returns, for each field that is read,
//! the row with the nearest value. So the newest value of each field is among the rows, and so is the newest row. A filter below the
//! aggregation may drop rows, but no row with a value of the field, and only if one field is read.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, IsNotNullExpr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use store::Order;

use super::replace_input::{with_input, with_scan};
use crate::column_kind::{field_count, is_tag, is_ts};

/// Tells scans below aggregations that need the last (or the first) row of each series only.
pub(super) fn read_last_rows(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let narrow = |node: Arc<dyn ExecutionPlan>| {
        let Some(stage) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let Some(order) = order_of_last_row(stage) else { return Ok(Transformed::no(node)) };
        Ok(match with_scan(stage.input(), &keeps_last_rows, &|scan| scan.last_rows(order))? {
            Some(input) => Transformed::yes(with_input(&node, input)?),
            None => Transformed::no(node),
        })
    };
    plan.transform_up(narrow).data()
}

/// Whether the operator passes the last row of each series on.
fn keeps_last_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        filter.fetch().is_none() && drops_no_last_row(filter)
    } else if let Some(spread) = plan.downcast_ref::<RepartitionExec>() {
        matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_))
    } else {
        false
    }
}

/// Whether the filter drops, of each series, all rows, no row, or the rows without a value of the only field that is read.
fn drops_no_last_row(filter: &FilterExec) -> bool {
    let schema = filter.input().schema();
    let asks_for_value = |condition: &Arc<dyn PhysicalExpr>| {
        let value = condition.downcast_ref::<IsNotNullExpr>();
        value.is_some_and(|value| value.arg().is::<Column>()) && fields_read(filter.input()) <= 1
    };
    let conditions = split_conjunction(filter.predicate());
    conditions.into_iter().all(|condition| depends_on_series(condition, &schema) || asks_for_value(condition))
}

/// Returns how many fields the scan below reads.
fn fields_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    match plan.children().as_slice() {
        [input] => fields_read(input),
        _ => field_count(&plan.schema()),
    }
}

/// Whether an expression has the same value in all rows of a series.
fn depends_on_series(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    !is_volatile(expression)
        && collect_columns(expression).iter().all(|column| is_tag(schema.field(column.index())))
}

/// Returns the end of time at which the first stage of an aggregation needs a row of each series; `None` if it needs other rows.
fn order_of_last_row(stage: &AggregateExec) -> Option<Order> {
    let reads_rows = matches!(
        stage.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    );
    let (by, schema) = (stage.group_expr(), stage.input().schema());
    let is_plain = reads_rows && by.is_single() && stage.filter_expr().iter().all(Option::is_none);
    if !is_plain || !by.expr().iter().all(|(group, _)| depends_on_series(group, &schema)) {
        return None;
    }
    let mut orders = stage.aggr_expr().iter().map(|aggregate| order_of_aggregate(aggregate, &schema));
    // Without aggregates the statement needs the groups only, which any row has.
    let Some(first) = orders.next() else { return Some(Order::Descending) };
    if orders.all(|order| order == first) { first } else { None }
}

fn order_of_aggregate(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Order> {
    let is_time = |expression: &Arc<dyn PhysicalExpr>| {
        expression.downcast_ref::<Column>().is_some_and(|column| is_ts(schema.field(column.index())))
    };
    let arguments = aggregate.expressions();
    let ([value], false) = (arguments.as_slice(), aggregate.is_distinct()) else { return None };
    let (is_last, is_descending) = match (aggregate.fun().name(), aggregate.order_bys()) {
        (name @ ("min" | "max"), []) if is_time(value) => (name == "max", false),
        (name @ ("first_value" | "last_value"), [order]) if is_time(&order.expr) => {
            // An expression may be NULL where its column is not, and then an older row counts.
            let counts_always = value.is::<Column>() || !aggregate.ignore_nulls();
            counts_always.then_some((name == "last_value", order.options.descending))?
        }
        _ => return None,
    };
    Some(if is_last == is_descending { Order::Ascending } else { Order::Descending })
}
