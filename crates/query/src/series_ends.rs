//! Reading one end of each series, where an aggregation looks at nothing else.
//!
//! `last(x, ts)` of every device needs one row of each. The store comes to it sooner than through all rows, so it is told
//! which end is looked at. What it leaves out are rows behind the nearest value of each field that is read, so the newest
//! value of each is among those that are left, and so is the newest row. A condition may hide rows, but none that has a value
//! of the field, if that is the only one.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, IsNotNullExpr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use store::Order;

use crate::reading::{field_count, is_tag, is_ts};
use crate::rewriting::{with_child, with_scan};

/// Tells scans below aggregations that look at one end of each series only.
#[derive(Debug)]
pub(crate) struct SeriesEnds;

impl PhysicalOptimizerRule for SeriesEnds {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let tell = |node: Arc<dyn ExecutionPlan>| {
            let Some(stage) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
            let Some(end) = end_of(stage) else { return Ok(Transformed::no(node)) };
            Ok(match with_scan(stage.input(), &keeps_ends, &|scan| scan.at_end(end))? {
                Some(input) => Transformed::yes(with_child(&node, input)?),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(tell).data()
    }

    fn name(&self) -> &str {
        "series_ends"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the rows that an operator gives have the ends of those that it takes.
fn keeps_ends(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        filter.fetch().is_none() && hides_no_end(filter)
    } else if let Some(dealt) = plan.downcast_ref::<RepartitionExec>() {
        matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_))
    } else {
        false
    }
}

/// Whether of each series a condition leaves out all rows, none, or those without a value of the only field that is read.
fn hides_no_end(filter: &FilterExec) -> bool {
    let schema = filter.input().schema();
    let asks_for_value = |condition: &Arc<dyn PhysicalExpr>| {
        let value = condition.downcast_ref::<IsNotNullExpr>();
        value.is_some_and(|value| value.arg().is::<Column>()) && fields_read(filter.input()) <= 1
    };
    let conditions = split_conjunction(filter.predicate());
    conditions.into_iter().all(|condition| depends_on_series(condition, &schema) || asks_for_value(condition))
}

/// How many fields the scan below reads.
fn fields_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    match plan.children().as_slice() {
        [input] => fields_read(input),
        _ => field_count(&plan.schema()),
    }
}

/// Whether an expression is the same for all rows of a series.
fn depends_on_series(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    !is_volatile(expression)
        && collect_columns(expression).iter().all(|column| is_tag(schema.field(column.index())))
}

/// The end of each series where all rows stand that the first stage of an aggregation looks at.
fn end_of(stage: &AggregateExec) -> Option<Order> {
    let reads_rows = matches!(
        stage.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    );
    let (by, schema) = (stage.group_expr(), stage.input().schema());
    let is_plain = reads_rows && by.is_single() && stage.filter_expr().iter().all(Option::is_none);
    if !is_plain || !by.expr().iter().all(|(group, _)| depends_on_series(group, &schema)) {
        return None;
    }
    let mut ends = stage.aggr_expr().iter().map(|aggregate| end_of_aggregate(aggregate, &schema));
    // Groups alone are the same at both ends.
    let Some(first) = ends.next() else { return Some(Order::Descending) };
    if ends.all(|end| end == first) { first } else { None }
}

fn end_of_aggregate(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Order> {
    let is_time = |expression: &Arc<dyn PhysicalExpr>| {
        expression.downcast_ref::<Column>().is_some_and(|column| is_ts(schema.field(column.index())))
    };
    let arguments = aggregate.expressions();
    let ([value], false) = (arguments.as_slice(), aggregate.is_distinct()) else { return None };
    let (is_last, is_descending) = match (aggregate.fun().name(), aggregate.order_bys()) {
        (name @ ("min" | "max"), []) if is_time(value) => (name == "max", false),
        (name @ ("first_value" | "last_value"), [order]) if is_time(&order.expr) => {
            // What is made of a value may be nothing, so that an older row counts.
            let counts_always = value.is::<Column>() || !aggregate.ignore_nulls();
            counts_always.then_some((name == "last_value", order.options.descending))?
        }
        _ => return None,
    };
    Some(if is_last == is_descending { Order::Ascending } else { Order::Descending })
}
