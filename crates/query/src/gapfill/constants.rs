//! Computes the constants of a statement while its plan is rewritten.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

/// The values that stay the same throughout one query.
pub(super) struct Constants<'a> {
    pub(super) options: &'a Arc<ConfigOptions>,
    /// The value of `now()`.
    pub(super) started_at: DateTime<Utc>,
}

impl Constants<'_> {
    /// The expression with every constant in it computed, `now()` among them.
    pub(super) fn simplify(&self, expr: Expr, schema: &DFSchemaRef) -> Result<Expr> {
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.options))
            .with_schema(Arc::clone(schema))
            .with_query_execution_start_time(Some(self.started_at));
        ExprSimplifier::new(context.build()).simplify(expr)
    }
}
