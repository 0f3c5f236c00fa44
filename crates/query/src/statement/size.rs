//! How large a statement may be beyond its length. The parser bounds what stands in parentheses. What it reads one after the other
//! becomes deep as well: `a OR b OR c` is an OR within an OR, each CTE may read the one before, and each join is within the next.
//! Planning walks all of that with frames on a stack, and takes ever longer for each further join: 500 are not planned in 30 s.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Statement, TableFactor, Visitor};

use super::within;
use crate::QueryError;
use crate::walk::walk;

/// Deepest expression.
pub(super) const EXPRESSION_LEVELS_MAX: usize = 1_000;
/// Most UNION, EXCEPT and INTERSECT.
pub(super) const SET_OPERATIONS_MAX: usize = 500;
/// Most tables that are joined to others.
pub(super) const JOINS_MAX: usize = 100;
/// Most queries in WITH.
pub(super) const CTES_MAX: usize = 100;

/// Refuses a statement that is too large. Looks no deeper into it than it may be deep.
pub(super) fn check(statement: &Statement) -> Result<(), QueryError> {
    let mut size = Size::default();
    // It stops at the first error.
    let _ = walk(statement, &mut size);
    size.error.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Size {
    /// Expressions around the one that is looked at.
    levels: usize,
    set_operations: usize,
    joins: usize,
    ctes: usize,
    error: Option<QueryError>,
}

impl Visitor for Size {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.ctes += query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        self.go_on(within(self.ctes, CTES_MAX, "the number of queries in WITH", "queries"))?;
        let mut bodies = vec![&*query.body];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => {
                    self.set_operations += 1;
                    bodies.extend([&**left, &**right]);
                }
                SetExpr::Select(select) => {
                    let tables = select.from.iter().map(|table| 1 + table.joins.len());
                    self.joins += tables.sum::<usize>().saturating_sub(1);
                }
                _ => {}
            }
        }
        let what = "the number of UNION, EXCEPT and INTERSECT";
        self.go_on(within(self.set_operations, SET_OPERATIONS_MAX, what, "of them"))?;
        self.joins_are_few()
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = table {
            self.joins += table_with_joins.joins.len();
        }
        self.joins_are_few()
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels += 1;
        self.go_on(within(self.levels, EXPRESSION_LEVELS_MAX, "the depth of an expression", "levels"))
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

impl Size {
    fn joins_are_few(&mut self) -> ControlFlow<()> {
        self.go_on(within(self.joins, JOINS_MAX, "the number of joins", "joins"))
    }

    /// Keeps an error and stops the walk.
    fn go_on(&mut self, within: Result<(), QueryError>) -> ControlFlow<()> {
        self.error = within.err();
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
