//! Chooses how many rows a batch of a statement has.
//!
//! A constant is copied into each row of a batch, and a join copies the text of a row for each match. So a statement with long
//! constants, or one that repeats text, runs in shorter batches. So does one that reads long texts.

use crate::QueryError;
use crate::column_kind::is_tag;
use crate::functions::bounded::is_bounded;
use crate::tables::OpenTables;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use model::limits::{QUERY_REPEATED_BATCH_ROWS, QUERY_REPEATED_BYTES_MAX, SQL_CACHED_BYTES_MAX};

/// Batches of long rows that an operator may hold: DataFusion's sort with a limit keeps whole batches until the rows that it does not need
/// are those of twenty batches.
const BATCHES_HELD: usize = 64;

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

/// Bytes of the rows of the table with the longest rows among those whose texts a plan reads; 0 without such a table.
pub(crate) fn long_row_bytes(plan: &LogicalPlan, tables: &OpenTables) -> Result<u64, QueryError> {
    let mut names = Vec::new();
    let is_text = |field: &FieldRef| *field.data_type() == DataType::Utf8View && !is_tag(field);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.projected_schema.fields().iter().any(is_text)
        {
            names.push(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut longest = 0;
    for name in names {
        longest = tables.find(&name)?.map_or(0, |table| table.snapshot.row_bytes()).max(longest);
    }
    Ok(longest)
}

/// Returns the rows of a batch, at most `rows_max`, of a statement whose operators may hold `held_max` bytes. Some operators hold many
/// batches, whatever rows of them they need.
pub(crate) fn rows_that_fit(row_bytes: u64, held_max: usize, rows_max: usize) -> usize {
    let rows = (held_max / BATCHES_HELD) as u64 / row_bytes.max(1);
    usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, rows_max)
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
    fn long_rows_make_short_batches() {
        const MIB: usize = 1024 * 1024;
        let rows = |row_bytes, held_max| rows_that_fit(row_bytes, held_max, 8_192);
        assert_eq!([0, 1, 500].map(|bytes| rows(bytes, 256 * MIB)), [8_192; 3]);
        assert_eq!((rows(20_000, 256 * MIB), rows(20_000, 16 * MIB)), (209, 13));
        assert_eq!(rows(u64::MAX, MIB), 1);
    }

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
