//! Rewrites comparisons with ANY and ALL in a statement to calls of our functions.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, ObjectName, VisitorMut};

use super::super::rewrite::listed;
use super::compare::{Quantifier, name};
use crate::parsed::{function, take, unnamed};
use crate::walk::walk_mut;

/// Rewrites comparisons with ANY and ALL.
pub(crate) fn name_comparisons(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut Comparisons);
        }
        Statement::Explain(explain) => name_comparisons(&mut explain.statement),
        _ => {}
    }
}

struct Comparisons;

impl VisitorMut for Comparisons {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let replacement = match expr {
            Expr::AnyOp { left, compare_op, right, .. } => {
                comparison(left, compare_op, Quantifier::Any, right)
            }
            Expr::AllOp { left, compare_op, right } => comparison(left, compare_op, Quantifier::All, right),
            // `x LIKE ANY (array)`
            Expr::Like { negated, any: true, expr, pattern, escape_char: None } => {
                let operator =
                    if *negated { BinaryOperator::PGNotLikeMatch } else { BinaryOperator::PGLikeMatch };
                comparison(expr, &operator, Quantifier::Any, pattern)
            }
            Expr::ILike { negated, any: true, expr, pattern, escape_char: None } => {
                let operator =
                    if *negated { BinaryOperator::PGNotILikeMatch } else { BinaryOperator::PGILikeMatch };
                comparison(expr, &operator, Quantifier::Any, pattern)
            }
            _ => None,
        };
        if let Some(replacement) = replacement {
            *expr = replacement;
        }
        ControlFlow::Continue(())
    }
}

fn comparison(
    left: &mut Expr,
    operator: &BinaryOperator,
    quantifier: Quantifier,
    right: &mut Expr,
) -> Option<Expr> {
    let is_membership = match quantifier {
        Quantifier::Any => *operator == BinaryOperator::Eq,
        Quantifier::All => *operator == BinaryOperator::NotEq,
    };
    if let Expr::Subquery(query) = right {
        if is_membership {
            let (expr, subquery) = (Box::new(take(left)), query.clone());
            let negated = quantifier == Quantifier::All;
            return Some(Expr::InSubquery { expr, subquery, negated });
        }
        let rows = Expr::Subquery(Box::new(listed(query)?));
        return Some(of_function(name(operator, quantifier, true)?, take(left), rows));
    }
    let name = name(operator, quantifier, false)?;
    let right = match take(right) {
        Expr::Nested(inner) => *inner,
        other => other,
    };
    Some(of_function(name, take(left), right))
}

fn of_function(name: String, left: Expr, right: Expr) -> Expr {
    let name = ObjectName::from(vec![Ident::with_quote('"', name)]);
    Expr::Function(function(name, vec![unnamed(left), unnamed(right)]))
}
