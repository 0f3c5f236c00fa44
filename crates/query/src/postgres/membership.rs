//! IN and EXISTS with a subquery where the planner has no place for them, or would overlook a NULL among the rows.
//!
//! It makes joins of what `WHERE` asks. They know found and not found, which is enough where NULL and false leave out the same rows.
//! Elsewhere the rows of the subquery become an array, whose comparisons know NULL, or a number.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr, Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{
    AggregateUDF, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, lit,
};

use super::array_comparison;
use crate::functions::Functions;

/// Rewrites such conditions in a plan whose types are not checked yet.
pub(crate) fn settle_memberships(plan: LogicalPlan, functions: &Functions) -> Result<LogicalPlan> {
    let settled = plan.transform_up_with_subqueries(|node| {
        let place = Place::of(&node);
        let names = NamePreserver::new(&node);
        let settle_one = |expr: Expr| {
            if !expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_))))? {
                return Ok(Transformed::no(expr));
            }
            let saved = names.save(&expr);
            let expr = match place {
                Place::Value => value(expr, functions),
                place => condition(expr, place, functions),
            }?;
            Ok(if expr.transformed { expr.update_data(|expr| saved.restore(expr)) } else { expr })
        };
        let node = node.map_expressions(|expr| match expr {
            // Each key in it is a column.
            set @ Expr::GroupingSet(_) => set.map_children(settle_one),
            expr => settle_one(expr),
        })?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })?;
    Ok(settled.data)
}

/// What becomes of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// Rows for which it is not true are left out, by a join of its own.
    Conjunct,
    /// The same, as a part of a larger condition.
    Part,
    /// NULL is another answer than false.
    Value,
}

impl Place {
    fn of(node: &LogicalPlan) -> Self {
        match node {
            LogicalPlan::Filter(_) => Self::Conjunct,
            LogicalPlan::Join(Join { join_type: JoinType::Inner, .. }) => Self::Part,
            _ => Self::Value,
        }
    }
}

/// A condition that leaves out the same rows whether it is false or NULL. Its parts joined by AND and OR do that as well.
fn condition(expr: Expr, place: Place, functions: &Functions) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
            let place = if binary.op == Operator::And { place } else { Place::Part };
            let left = condition(*binary.left, place, functions)?;
            let right = condition(*binary.right, place, functions)?;
            let is_changed = left.transformed || right.transformed;
            let joined = BinaryExpr::new(Box::new(left.data), binary.op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(joined), is_changed))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let inverse = Expr::InSubquery(InSubquery { expr, subquery, negated: !negated });
                condition(inverse, place, functions)
            }
            inner => value(Expr::Not(Box::new(inner)), functions),
        },
        Expr::InSubquery(membership) if is_joined(&membership, place) => {
            Ok(Transformed::no(Expr::InSubquery(membership)))
        }
        exists @ Expr::Exists(_) => Ok(Transformed::no(exists)),
        other => value(other, functions),
    }
}

/// Whether the planner's join for it leaves out the right rows. The one for NOT IN has one key, from each side.
fn is_joined(membership: &InSubquery, place: Place) -> bool {
    !membership.negated
        || (place == Place::Conjunct
            && membership.subquery.outer_ref_columns.is_empty()
            && !membership.expr.column_refs().is_empty())
}

/// An expression in which the truth of a membership may be NULL.
fn value(expr: Expr, functions: &Functions) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::InSubquery(membership) if membership.subquery.subquery.schema().fields().len() == 1 => {
            compared(membership, functions).map(Transformed::yes)
        }
        Expr::Exists(exists) => counted(exists, functions).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
}

/// `x IN (SELECT y ...)` as `x = ANY ((SELECT array_agg(DISTINCT y) ...))`.
fn compared(membership: InSubquery, functions: &Functions) -> Result<Expr> {
    let InSubquery { expr, subquery, negated } = membership;
    let name = if negated { "<> ALL (SELECT)" } else { "= ANY (SELECT)" };
    let comparison = array_comparison(name)
        .ok_or_else(|| DataFusionError::Internal(format!("there is no comparison {name}")))?;
    let column = Expr::Column(subquery.subquery.schema().columns()[0].clone());
    let rows = aggregated(subquery, &functions.aggregate["array_agg"], column, true)?;
    Ok(comparison.call(vec![*expr, rows]))
}

/// `EXISTS (SELECT ...)` as `(SELECT count(1) ...) > 0`.
fn counted(exists: Exists, functions: &Functions) -> Result<Expr> {
    let rows = aggregated(exists.subquery, &functions.aggregate["count"], lit(1_i64), false)?;
    Ok(if exists.negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) })
}

/// The one value that a function makes of the rows of a subquery.
fn aggregated(
    subquery: Subquery,
    function: &Arc<AggregateUDF>,
    argument: Expr,
    is_distinct: bool,
) -> Result<Expr> {
    let Subquery { subquery, outer_ref_columns, spans } = subquery;
    let call =
        AggregateFunction::new_udf(Arc::clone(function), vec![argument], is_distinct, None, Vec::new(), None);
    let rows = LogicalPlanBuilder::from(subquery)
        .aggregate(Vec::<Expr>::new(), [Expr::AggregateFunction(call).alias("rows")])?
        .build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(rows), outer_ref_columns, spans }))
}
