//! Rewrites IN and EXISTS with a subquery where DataFusion refuses them or ignores a NULL among the rows.
//!
//! DataFusion makes joins of such conditions in WHERE. A join knows found and not found, which is enough where NULL and false both
//! drop the row. Elsewhere the rows of the subquery become an array, whose comparisons know NULL, or a count.

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
        let condition_use = ConditionUse::of(&node);
        let names = NamePreserver::new(&node);
        let settle_one = |expr: Expr| {
            if !expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_))))? {
                return Ok(Transformed::no(expr));
            }
            let saved = names.save(&expr);
            let expr = match condition_use {
                ConditionUse::Value => value(expr, functions),
                condition_use => condition(expr, condition_use, functions),
            }?;
            Ok(if expr.transformed { expr.update_data(|expr| saved.restore(expr)) } else { expr })
        };
        let node = node.map_expressions(|expr| match expr {
            // Each key of a grouping set is a column.
            set @ Expr::GroupingSet(_) => set.map_children(settle_one),
            expr => settle_one(expr),
        })?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })?;
    Ok(settled.data)
}

/// The use of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ConditionUse {
    /// A condition of WHERE, for which DataFusion can make a join.
    Conjunct,
    /// Such a condition as a part of a larger one.
    PartOfCondition,
    /// An expression in which NULL and false differ.
    Value,
}

impl ConditionUse {
    fn of(node: &LogicalPlan) -> Self {
        match node {
            LogicalPlan::Filter(_) => Self::Conjunct,
            LogicalPlan::Join(Join { join_type: JoinType::Inner, .. }) => Self::PartOfCondition,
            _ => Self::Value,
        }
    }
}

/// Rewrites a condition that drops a row whether it is false or NULL. Its parts joined by AND and OR do the same.
fn condition(expr: Expr, condition_use: ConditionUse, functions: &Functions) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
            let condition_use =
                if binary.op == Operator::And { condition_use } else { ConditionUse::PartOfCondition };
            let left = condition(*binary.left, condition_use, functions)?;
            let right = condition(*binary.right, condition_use, functions)?;
            let is_changed = left.transformed || right.transformed;
            let joined = BinaryExpr::new(Box::new(left.data), binary.op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(joined), is_changed))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let inverse = Expr::InSubquery(InSubquery { expr, subquery, negated: !negated });
                condition(inverse, condition_use, functions)
            }
            inner => value(Expr::Not(Box::new(inner)), functions),
        },
        Expr::InSubquery(membership) if is_joined(&membership, condition_use) => {
            Ok(Transformed::no(Expr::InSubquery(membership)))
        }
        exists @ Expr::Exists(_) => Ok(Transformed::no(exists)),
        other => value(other, functions),
    }
}

/// Whether DataFusion's join drops the right rows. Its join for NOT IN has one key, from each side. A key that the optimizer finds to be
/// constant would become a filter, which drops the NULL of the other side: so the key is a column.
fn is_joined(membership: &InSubquery, condition_use: ConditionUse) -> bool {
    !membership.negated
        || (condition_use == ConditionUse::Conjunct
            && membership.subquery.outer_ref_columns.is_empty()
            && is_column(&membership.expr))
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => is_column(&cast.expr),
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Rewrites an expression in which the result of a membership may be NULL.
fn value(expr: Expr, functions: &Functions) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::InSubquery(membership) if membership.subquery.subquery.schema().fields().len() == 1 => {
            compared(membership, functions).map(Transformed::yes)
        }
        Expr::Exists(exists) => counted(exists, functions).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
}

/// Rewrites `x IN (SELECT y ...)` to `x = ANY ((SELECT array_agg(DISTINCT y) ...))`.
fn compared(membership: InSubquery, functions: &Functions) -> Result<Expr> {
    let InSubquery { expr, subquery, negated } = membership;
    let name = if negated { "<> ALL (SELECT)" } else { "= ANY (SELECT)" };
    let comparison = array_comparison(name)
        .ok_or_else(|| DataFusionError::Internal(format!("there is no comparison {name}")))?;
    let column = Expr::Column(subquery.subquery.schema().columns()[0].clone());
    let rows = aggregated(subquery, &functions.aggregate["array_agg"], column, true)?;
    Ok(comparison.call(vec![*expr, rows]))
}

/// Rewrites `EXISTS (SELECT ...)` to `(SELECT count(1) ...) > 0`.
fn counted(exists: Exists, functions: &Functions) -> Result<Expr> {
    let rows = aggregated(exists.subquery, &functions.aggregate["count"], lit(1_i64), false)?;
    Ok(if exists.negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) })
}

/// Returns the one value that an aggregate makes of the rows of a subquery.
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
