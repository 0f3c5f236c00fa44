//! Marks in a plan that tell DataFusion's planner which columns are one column for `*` and for names without a table.
//!
//! The planner reads this from joins with USING. So a mark is such a join, with an empty relation. It is removed before the plan is
//! optimised.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, NullEquality, Result};
use datafusion::logical_expr::{EmptyRelation, Expr, Join, JoinConstraint, JoinType, LogicalPlan};

/// Marks the second column of each pair as one with the first.
pub(super) fn marked(plan: LogicalPlan, same: &[(Column, Column)]) -> LogicalPlan {
    let schema = Arc::clone(plan.schema());
    let empty = EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
    let column = |column: &Column| Expr::Column(column.clone());
    LogicalPlan::Join(Join {
        left: Arc::new(plan),
        right: Arc::new(LogicalPlan::EmptyRelation(empty)),
        on: same.iter().map(|(one, other)| (column(one), column(other))).collect(),
        filter: None,
        join_type: JoinType::Left,
        join_constraint: JoinConstraint::Using,
        schema,
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    })
}

/// Removes all marks.
pub(crate) fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let unmarked = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_mark(&join) => Ok(Transformed::yes(Arc::unwrap_or_clone(join.left))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(unmarked.data)
}

fn is_mark(join: &Join) -> bool {
    join.join_constraint == JoinConstraint::Using
        && matches!(&*join.right, LogicalPlan::EmptyRelation(empty) if empty.schema.fields().is_empty())
}
