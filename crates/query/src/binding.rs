//! A look at the calls of a plan: each is of a function whose results and work are bounded.
//!
//! Planners of expressions and rules of the optimiser make calls of the library's own functions, and `||`, `~` and LIKE are operators
//! that nobody bounds. This puts ours in their place, under the same names. It runs twice: before the optimiser, which computes
//! what is constant, and after it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::functions::bounded::{is_bounded, is_unbound};
use crate::functions::{Functions, once, pattern_match, text_concat};
use crate::postgres;

/// When a plan is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// What the optimiser hands to the store, columns compared with a constant pattern, stays an operator.
    BeforeOptimizer,
    AfterOptimizer,
}

/// The plan with bounded calls only.
pub(crate) fn bind(plan: LogicalPlan, functions: &Functions, when: When) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        // The filters of a scan go to the store, which computes none of these calls. The values of LIMIT are numbers.
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
        // The size of its value is known when it has run.
        Expr::ScalarSubquery(subquery) if when == When::AfterOptimizer => {
            let call = ScalarFunction { func: once::function(), args: vec![Expr::ScalarSubquery(subquery)] };
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(of_call(other, functions, when)),
    }
}

/// Whether it computes with a constant without writing it out for each row, or counts it as often as there are rows.
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
