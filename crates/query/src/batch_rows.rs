//! Chooses how many rows a batch of a statement has.
//!
//! A constant is copied into each row of a batch, and a join copies the text of a row for each match. So a statement with long
//! constants, or one that repeats text, runs in shorter batches.

use crate::functions::bounded::is_bounded;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use model::limits::{QUERY_REPEATED_BATCH_ROWS, QUERY_REPEATED_BYTES_MAX, SQL_CACHED_BYTES_MAX};

/// The constants of a plan, and whether it repeats text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Repeated {
    /// Bytes of the longest constant.
    longest: usize,
    /// Bytes of all constants.
    total: usize,
    /// Whether an operator copies the text of one row into several.
    repeats_text: bool,
}

impl Repeated {
    /// Looks at an optimised plan, whose constants are computed.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut found = Self::default();
        plan.apply_with_subqueries(|node| {
            found.repeats_text |= match node {
                LogicalPlan::Join(_) | LogicalPlan::Unnest(_) => {
                    node.inputs().iter().any(|input| has_copied_values(input.schema().as_arrow()))
                }
                // A window also copies text that is stored as views.
                LogicalPlan::Window(window) => {
                    let has_no_size = |field: &FieldRef| field.data_type().primitive_width().is_none();
                    let added = window.schema.fields().iter().skip(window.input.schema().fields().len());
                    added.into_iter().any(has_no_size)
                }
                _ => false,
            };
            node.apply_expressions(|expr| {
                found.look_at(expr, false)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(found)
    }

    /// Looks at an expression. The bound of a bounded function already covers its constant arguments.
    fn look_at(&mut self, expr: &Expr, is_bounded_argument: bool) -> Result<()> {
        let is_call = matches!(expr, Expr::ScalarFunction(call) if is_bounded(call));
        if let Expr::Literal(value, _) = expr {
            let bytes = value.size();
            self.longest = self.longest.max(bytes);
            self.total = self.total.saturating_add(bytes);
        } else if is_call && !is_bounded_argument && expr.column_refs().is_empty() {
            // The optimiser has not computed this call, so its result is long.
            self.longest = QUERY_REPEATED_BYTES_MAX;
        }
        expr.apply_children(|child| {
            self.look_at(child, is_call)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Returns the rows of a batch, at most `rows_max`.
    pub(crate) fn batch_rows(self, rows_max: usize) -> usize {
        let rows = if self.repeats_text { rows_max.min(QUERY_REPEATED_BATCH_ROWS) } else { rows_max };
        rows.min(QUERY_REPEATED_BYTES_MAX / self.longest.max(1)).max(1)
    }

    /// Whether a plan with these constants may be cached.
    pub(crate) fn may_be_cached(self) -> bool {
        // Each constant takes a few dozen bytes in addition to its text.
        self.total <= 16 * SQL_CACHED_BYTES_MAX
    }
}

/// Whether rows hold values that are copied when a row is repeated. Text columns of tables are views, which are not copied.
fn has_copied_values(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| is_copied(field.data_type()))
}

pub(crate) fn is_copied(data_type: &DataType) -> bool {
    data_type.primitive_width().is_none()
        && !matches!(
            data_type,
            DataType::Boolean | DataType::Null | DataType::Utf8View | DataType::BinaryView
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_constants_and_repeated_text_make_short_batches() {
        let rows =
            |longest, repeats_text| Repeated { longest, total: longest, repeats_text }.batch_rows(8_192);
        assert_eq!(rows(100, false), 8_192);
        assert_eq!(rows(64 * 1024, false), QUERY_REPEATED_BYTES_MAX / (64 * 1024));
        assert_eq!(rows(usize::MAX, false), 1);
        assert_eq!(rows(100, true), QUERY_REPEATED_BATCH_ROWS);
        assert!(Repeated { total: 1_000, ..Repeated::default() }.may_be_cached());
        assert!(!Repeated { total: 1_000_000, ..Repeated::default() }.may_be_cached());
    }
}
