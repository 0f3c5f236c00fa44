//! Compares truth values with texts.
//!
//! In PostgreSQL a text constant takes the type of the value that it is compared with, so `"on" = 't'` is valid. Drivers that write
//! values into the text of a statement use it, such as JDBC in its simple mode.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Converts text constants beside a truth value to truth values.
#[derive(Debug)]
struct BooleanText;

pub(crate) fn planner() -> Arc<dyn ExprPlanner> {
    Arc::new(BooleanText)
}

impl ExprPlanner for BooleanText {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        );
        if compares {
            let is_truth = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Boolean));
            if text(&expr.right).is_some() && is_truth(&expr.left) {
                expr.right = said(expr.right)?;
            } else if text(&expr.left).is_some() && is_truth(&expr.right) {
                expr.left = said(expr.left)?;
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

fn text(expr: &Expr) -> Option<&str> {
    let Expr::Literal(value, _) = expr else { return None };
    value.try_as_str().flatten()
}

fn said(literal: Expr) -> Result<Expr> {
    match text(&literal).map(truth) {
        Some(Some(value)) => Ok(lit(value)),
        Some(None) => {
            let text = text(&literal).unwrap_or_default();
            let message = format!("invalid input syntax for type boolean: {text:?}; write true or false");
            Err(DataFusionError::Plan(message))
        }
        None => Ok(literal),
    }
}

/// The spellings of <https://www.postgresql.org/docs/current/datatype-boolean.html>: words, or unique prefixes of them.
pub(super) fn truth(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    let begins = |whole: &str| !word.is_empty() && whole.starts_with(&word);
    if begins("true") || begins("yes") || word == "on" || word == "1" {
        Some(true)
    } else if begins("false") || begins("no") || matches!(word.as_str(), "of" | "off" | "0") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_prefixes_are_truth_values() {
        for word in ["t", "TRUE", " tru ", "y", "yes", "on", "1"] {
            assert_eq!(truth(word), Some(true), "{word}");
        }
        for word in ["f", "False", "n", "no", "of", "off", "0"] {
            assert_eq!(truth(word), Some(false), "{word}");
        }
        for word in ["", "o", "truth", "2", "nope", "on1"] {
            assert_eq!(truth(word), None, "{word}");
        }
    }
}
