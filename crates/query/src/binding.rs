//! Replaces the calls of a plan by calls of functions with bounded results and bounded work.
//!
//! DataFusion's expression planners and optimizer rules call its own functions, and `||`, `~` and LIKE are operators without
//! bounds. This puts our functions of the same names in their place. It runs twice: before the optimiser, which computes constants,
//! and after it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::functions::bounded::{is_bounded, is_unbound};
use crate::functions::{Functions, once, pattern_match, text_concat};
use crate::postgres;

/// When a plan is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Operators that the optimiser pushes to the store stay: comparisons of columns with a constant pattern.
    BeforeOptimizer,
    AfterOptimizer,
}

/// Returns the plan with bounded calls only.
pub(crate) fn bind(plan: LogicalPlan, functions: &Functions, when: When) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        // The store decides the filters of a scan and computes none of these calls. The values of LIMIT are numbers.
        if matches!(node, LogicalPlan::TableScan(_) | LogicalPlan::Limit(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let saved = names.save(&expr);
            let bound = expr.transform_up(|expr| bound(expr, functions, when))?;
            Ok(if bound.transformed { bound.update_data(|expr| saved.restore(expr)) } else { bound })
        })
    })
    .data()
}

fn bound(expr: Expr, functions: &Functions, when: When) -> Result<Transformed<Expr>> {
    if when == When::AfterOptimizer && takes_constants(&expr) {
        let bound = expr.map_children(|argument| Ok(without_once(argument)))?.data;
        return Ok(Transformed::yes(of_call(bound, functions, when).data));
    }
    match expr {
        // The size of the value is known only when the subquery has run.
        Expr::ScalarSubquery(subquery) if when == When::AfterOptimizer => {
            let call = ScalarFunction { func: once::function(), args: vec![Expr::ScalarSubquery(subquery)] };
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(of_call(other, functions, when)),
    }
}

/// Whether the call takes a constant without copying it for each row, or counts the copies itself.
fn takes_constants(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => is_bounded(call) || postgres::compares_with_array(&call.func),
        Expr::IsNull(_) | Expr::IsNotNull(_) => true,
        _ => false,
    }
}

fn without_once(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(mut call) if call.func.name() == once::NAME && call.args.len() == 1 => {
            Transformed::yes(call.args.remove(0))
        }
        other => Transformed::no(other),
    }
}

fn of_call(expr: Expr, functions: &Functions, when: When) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(call) if is_unbound(&call) => match functions.scalar.get(call.func.name()) {
            Some(ours) => {
                let call = ScalarFunction { func: Arc::clone(ours), args: call.args };
                Transformed::yes(Expr::ScalarFunction(call))
            }
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            Transformed::yes(call(text_concat::function(), *left, *right))
        }
        Expr::Like(like) if when == When::AfterOptimizer || !may_be_the_stores(&like.expr, &like.pattern) => {
            match pattern_match::like(&like) {
                Some(function) => Transformed::yes(call(function, *like.expr, *like.pattern)),
                None => Transformed::no(Expr::Like(like)),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if when == When::AfterOptimizer || !may_be_the_stores(&left, &right) =>
        {
            match pattern_match::operator(op) {
                Some(function) => Transformed::yes(call(function, *left, *right)),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        other => Transformed::no(other),
    }
}

fn may_be_the_stores(text: &Expr, pattern: &Expr) -> bool {
    let text = if let Expr::Cast(cast) = text { &*cast.expr } else { text };
    matches!(text, Expr::Column(_)) && pattern.column_refs().is_empty()
}

fn call(func: Arc<datafusion::logical_expr::ScalarUDF>, left: Expr, right: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction { func, args: vec![left, right] })
}
