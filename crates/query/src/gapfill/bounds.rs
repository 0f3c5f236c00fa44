//! Finds the range of time that the conditions of a query leave.

use arrow_schema::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, Join, JoinType, LogicalPlan};
use model::TimeRange;

use super::constants::Constants;
use crate::pushdown::{hull, intersect, times, uncast_time};

/// Returns a range that contains all times of a column of a plan.
pub(super) fn range_of(plan: &LogicalPlan, column: &Column, constants: &Constants<'_>) -> Result<TimeRange> {
    let inner = |input: &LogicalPlan, index: Option<usize>| match index {
        Some(index) => range_of(input, &input.schema().columns()[index], constants),
        None => Ok(TimeRange::ALL),
    };
    let index = plan.schema().maybe_index_of_column(column);
    match plan {
        LogicalPlan::Filter(filter) => {
            let mut range = range_of(&filter.input, column, constants)?;
            for condition in split_conjunction(&filter.predicate) {
                range = intersect(range, condition_range(condition, &filter.input, column, constants)?);
            }
            Ok(range)
        }
        LogicalPlan::SubqueryAlias(alias) => inner(&alias.input, index),
        LogicalPlan::Sort(sort) => inner(&sort.input, index),
        LogicalPlan::Limit(limit) => inner(&limit.input, index),
        LogicalPlan::Distinct(Distinct::All(input)) => inner(input, index),
        LogicalPlan::Union(union) => {
            let mut ranges = union.inputs.iter().map(|input| inner(input, index));
            let Some(first) = ranges.next() else { return Ok(TimeRange::ALL) };
            ranges.try_fold(first?, |all, range| Ok(hull(all, range?)))
        }
        // The columns that the window adds come after those of the input.
        LogicalPlan::Window(window) => {
            inner(&window.input, index.filter(|index| *index < window.input.schema().fields().len()))
        }
        LogicalPlan::Projection(projection) => {
            through(&projection.input, index.and_then(|index| projection.expr.get(index)), constants)
        }
        LogicalPlan::Aggregate(aggregate) => {
            through(&aggregate.input, index.and_then(|index| aggregate.group_expr.get(index)), constants)
        }
        LogicalPlan::Join(join) => joined(join, column, constants),
        _ => Ok(TimeRange::ALL),
    }
}

/// Returns the range of a column that the node passes on unchanged.
fn through(input: &LogicalPlan, expr: Option<&Expr>, constants: &Constants<'_>) -> Result<TimeRange> {
    match expr.map(unalias) {
        Some(Expr::Column(column)) => range_of(input, column, constants),
        _ => Ok(TimeRange::ALL),
    }
}

pub(super) fn unalias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unalias(&alias.expr),
        _ => expr,
    }
}

/// Returns the range of a column of a join. A row without a match on that side has NULL as its time, which is not outside of the
/// range.
fn joined(join: &Join, column: &Column, constants: &Constants<'_>) -> Result<TimeRange> {
    let side = [&join.left, &join.right].into_iter().find(|side| side.schema().has_column(column));
    let Some(side) = side else { return Ok(TimeRange::ALL) };
    let mut range = range_of(side, column, constants)?;
    if join.join_type == JoinType::Inner
        && let Some(filter) = &join.filter
    {
        for condition in split_conjunction(filter) {
            range = intersect(range, condition_range(condition, side, column, constants)?);
        }
    }
    Ok(range)
}

fn condition_range(
    condition: &Expr,
    input: &LogicalPlan,
    column: &Column,
    constants: &Constants<'_>,
) -> Result<TimeRange> {
    // A condition without the column has no range. Neither does one that cannot be simplified.
    if !condition.column_refs().contains(column) {
        return Ok(TimeRange::ALL);
    }
    let condition = constants.simplify(condition.clone(), input.schema())?;
    let is_time = |expr: &Expr| is_same_time(expr, input, column);
    Ok(times(&condition, &is_time).map_or(TimeRange::ALL, |(range, _)| range))
}

/// Whether the expression is the column, perhaps in another unit.
fn is_same_time(expr: &Expr, input: &LogicalPlan, column: &Column) -> bool {
    let inner = uncast_time(expr);
    let zone = |expr: &Expr| match expr.get_type(input.schema()) {
        Ok(DataType::Timestamp(_, zone)) => Some(zone),
        _ => None,
    };
    // A cast to a time without a zone shifts the time.
    let is_kept = || zone(inner).is_some_and(|own| own.as_deref() == Some("UTC") || zone(expr) == Some(own));
    inner.try_as_col() == Some(column) && is_kept()
}

/// Returns the column whose times a call takes unchanged.
pub(super) fn column_of<'a>(time: &'a Expr, input: &LogicalPlan) -> Option<&'a Column> {
    let column = uncast_time(time).try_as_col()?;
    is_same_time(time, input, column).then_some(column)
}
