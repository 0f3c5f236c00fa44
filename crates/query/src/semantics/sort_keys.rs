//! Sorts by each key once. A key that comes again decides nothing, and DataFusion's sorts panic over it.

use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, SortExpr};

/// Removes repeated keys from an ORDER BY, also that of DISTINCT ON.
pub(super) fn once_each(node: LogicalPlan) -> LogicalPlan {
    match node {
        LogicalPlan::Sort(mut sort) => {
            remove_repeats(&mut sort.expr);
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            distinct.sort_expr.iter_mut().for_each(remove_repeats);
            LogicalPlan::Distinct(Distinct::On(distinct))
        }
        other => other,
    }
}

/// Removes repeated keys from the ORDER BY of an aggregate.
pub(super) fn once_in(expr: &mut Expr) {
    if let Expr::AggregateFunction(aggregate) = expr {
        remove_repeats(&mut aggregate.params.order_by);
    }
}

fn remove_repeats(keys: &mut Vec<SortExpr>) {
    let mut seen: Vec<Expr> = Vec::new();
    keys.retain(|key| {
        let is_new = !seen.contains(&key.expr);
        if is_new {
            seen.push(key.expr.clone());
        }
        is_new
    });
}
