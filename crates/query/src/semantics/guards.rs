//! Makes conditions protect other conditions from failing.
//!
//! `WHERE n <> 0 AND total / n > 3` must not divide by zero: PostgreSQL checks the conditions one after the other. DataFusion
//! computes both for a whole batch. So a condition that may fail is computed only for rows that the other conditions leave
//! undecided.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr};
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{Case, Expr, Operator, lit};

use super::{arithmetic, casts};

/// Returns the expression with guarded conditions.
pub(super) fn guarded(expr: Expr) -> Result<Transformed<Expr>> {
    if !contains_failing(&expr) {
        return Ok(Transformed::no(expr));
    }
    expr.transform_down(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let mut conditions = Vec::new();
            split(expr, op, &mut conditions);
            let conditions = conditions.into_iter().map(|condition| Ok(guarded(condition)?.data));
            let condition = apart(conditions.collect::<Result<_>>()?, op == Operator::And);
            Ok(Transformed::new(condition, true, TreeNodeRecursion::Jump))
        }
        Expr::AggregateFunction(aggregate) => Ok(of_aggregate(aggregate)),
        // The optimiser turns a CASE of conditions into AND and OR, unless the CASE compares a value.
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            let expr = Some(Box::new(lit(true)));
            Ok(Transformed::yes(Expr::Case(Case { expr, when_then_expr, else_expr })))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// Returns conditions joined by AND or OR, with those that may fail behind the others.
fn apart(conditions: Vec<Expr>, is_and: bool) -> Expr {
    let joined = |conditions: Vec<Expr>| {
        let joined = if is_and { conjunction(conditions) } else { disjunction(conditions) };
        joined.expect("BUG: there is a condition")
    };
    let (failing, safe): (Vec<_>, Vec<_>) = conditions.into_iter().partition(may_fail);
    if safe.is_empty() || failing.is_empty() {
        return joined([failing, safe].concat());
    }
    let others = joined(safe);
    let is_open = if is_and {
        Expr::IsNotFalse(Box::new(others.clone()))
    } else {
        Expr::IsNotTrue(Box::new(others.clone()))
    };
    let guarded = Expr::Case(Case {
        expr: Some(Box::new(is_open)),
        when_then_expr: vec![(Box::new(lit(true)), Box::new(joined(failing)))],
        else_expr: Some(Box::new(lit(!is_and))),
    });
    joined(vec![others, guarded])
}

fn split(expr: Expr, operator: Operator, conditions: &mut Vec<Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op == operator => {
            split(*left, operator, conditions);
            split(*right, operator, conditions);
        }
        other => conditions.push(other),
    }
}

/// Returns an aggregate that computes its arguments only for the rows that its FILTER keeps.
fn of_aggregate(mut aggregate: AggregateFunction) -> Transformed<Expr> {
    let params = &mut aggregate.params;
    let Some(filter) = params.filter.clone().filter(|_| params.args.iter().any(may_fail)) else {
        return Transformed::no(Expr::AggregateFunction(aggregate));
    };
    for argument in params.args.iter_mut().filter(|argument| may_fail(argument)) {
        let guarded = std::mem::replace(argument, lit(false));
        *argument = Expr::Case(Case {
            expr: Some(filter.clone()),
            when_then_expr: vec![(Box::new(lit(true)), Box::new(guarded))],
            else_expr: None,
        });
    }
    Transformed::yes(Expr::AggregateFunction(aggregate))
}

/// Whether an expression needs a guard: it may fail, and no CASE of its own guards it.
fn may_fail(expr: &Expr) -> bool {
    !matches!(expr, Expr::Case(_)) && contains_failing(expr)
}

/// Whether an expression divides, or reads a value from text.
fn contains_failing(expr: &Expr) -> bool {
    let fails = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => {
            arithmetic::divides(&call.func)
                || casts::reads_text(&call.func) && !matches!(call.args.as_slice(), [Expr::Literal(..)])
        }
        _ => false,
    };
    expr.exists(|expr| Ok(fails(expr))).unwrap_or(false)
}
