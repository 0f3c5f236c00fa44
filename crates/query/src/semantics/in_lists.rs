//! Rewrites `x IN (...)` so that the optimiser keeps PostgreSQL's rules for NULL.
//!
//! The optimiser merges two lists for the same value. If no element is left, it returns true or false even if the value is NULL. So
//! NULL is moved out of the list, and of two lists for one value the second is hidden from the optimiser.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Case, Expr, LogicalPlan, Operator, lit};

/// Rewrites lists in a plan whose types are checked.
pub(crate) fn keep_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let rewrite_one = |expr: Expr| {
            if !expr.exists(|expr| Ok(matches!(expr, Expr::InList(_))))? {
                return Ok(Transformed::no(expr));
            }
            let saved = names.save(&expr);
            let expr = apart(expr)?;
            Ok(if expr.transformed { expr.update_data(|expr| saved.restore(expr)) } else { expr })
        };
        node.map_expressions(|expr| match expr {
            // Each key of a grouping set is a column.
            set @ Expr::GroupingSet(_) => set.map_children(rewrite_one),
            expr => rewrite_one(expr),
        })
    })?;
    Ok(rewritten.data)
}

fn apart(expr: Expr) -> Result<Transformed<Expr>> {
    let may_merge = lists_merge_rightly(&expr);
    let mut seen: Vec<Expr> = Vec::new();
    expr.transform_up(|expr| {
        let Expr::InList(list) = expr else { return Ok(Transformed::no(expr)) };
        let is_again = seen.contains(&list.expr);
        if !is_again {
            seen.push((*list.expr).clone());
        }
        let rewritten = without_null(list);
        Ok(if is_again && !may_merge { Transformed::yes(hidden(rewritten.data)) } else { rewritten })
    })
}

/// Whether the condition has only IN, or only NOT IN. Then the optimiser may merge two lists.
fn lists_merge_rightly(expr: &Expr) -> bool {
    let (mut operators, mut are_negated) = (Vec::new(), Vec::new());
    let _ = expr.apply(|part| {
        match part {
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
                operators.push(binary.op);
            }
            Expr::Not(_) => operators.extend([Operator::And, Operator::Or]),
            Expr::InList(list) => are_negated.push(list.negated),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let all = |wanted: Operator, negated: bool| {
        operators.iter().all(|operator| *operator == wanted) && are_negated.iter().all(|one| *one == negated)
    };
    all(Operator::And, true) || all(Operator::Or, false)
}

/// Rewrites `x IN (a, NULL)` to `x IN (a) OR NULL`, and `x NOT IN (a, NULL)` to `x NOT IN (a) AND NULL`.
fn without_null(list: InList) -> Transformed<Expr> {
    let is_null = |element: &Expr| matches!(element, Expr::Literal(value, _) if value.is_null());
    if !list.list.iter().any(is_null) {
        return Transformed::no(Expr::InList(list));
    }
    let InList { expr, mut list, negated } = list;
    list.retain(|element| !is_null(element));
    let null = lit(ScalarValue::Boolean(None));
    if list.is_empty() {
        return Transformed::yes(null);
    }
    let found = Expr::InList(InList { expr, list, negated });
    Transformed::yes(if negated { found.and(null) } else { found.or(null) })
}

/// Returns the same condition in a form that the optimiser does not change.
fn hidden(condition: Expr) -> Expr {
    let branch = |truth: bool| (Box::new(lit(truth)), Box::new(lit(truth)));
    Expr::Case(Case {
        expr: Some(Box::new(condition)),
        when_then_expr: vec![branch(true), branch(false)],
        else_expr: None,
    })
}
