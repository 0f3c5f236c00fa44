//! Limits the size of a statement beyond its length.
//!
//! The parser limits the depth of parentheses. A sequence becomes deep as well: `a OR b OR c` is an OR within an OR, each CTE may
//! read the one before, and each join contains the next. Planning recurses through all of it, and each further join takes longer:
//! 500 joins take more than 30 s. A query in WITH is planned again wherever it is named, so it is counted each time. With queries
//! that each name the one before twice, the count soon reaches billions.

use std::collections::HashMap;
use std::ops::{AddAssign, ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableFactor, Visitor,
};

use super::check_count::check_count;
use crate::QueryError;
use crate::postgres::folded;
use crate::walk::walk;

/// The deepest expression.
pub(super) const EXPRESSION_LEVELS_MAX: usize = 1_000;
/// The most UNION, EXCEPT and INTERSECT.
pub(super) const SET_OPERATIONS_MAX: usize = 500;
/// The most joined tables.
pub(super) const JOINS_MAX: usize = 100;
/// The most queries in WITH.
pub(super) const CTES_MAX: usize = 100;
/// The most queries and tables, where a query in WITH counts each time it is named.
pub(super) const PLANNED_QUERIES_MAX: usize = 2_000;
/// The most values in a SELECT list, as in PostgreSQL. Planning compares each with all others.
pub(super) const SELECTED_MAX: usize = 1_664;
/// The most keys of a CUBE. It groups by each subset of them, and DataFusion takes 4,096 sets.
pub(super) const CUBE_KEYS_MAX: usize = 12;

/// Refuses a statement that is too large. The check looks no deeper than the limit.
pub(super) fn check(statement: &Statement) -> Result<(), QueryError> {
    let mut size = Size::default();
    // The walk stops at the first error.
    let _ = walk(statement, &mut size);
    size.error.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Size {
    /// The depth of the current expression.
    levels: usize,
    set_operations: usize,
    joins: usize,
    ctes: usize,
    /// The queries around the current node.
    around: Vec<Frame>,
    error: Option<QueryError>,
}

/// The counts of a query that determine the cost of planning.
#[derive(Debug, Clone, Copy, Default)]
struct Planned {
    queries: usize,
    joins: usize,
    set_operations: usize,
}

impl AddAssign for Planned {
    fn add_assign(&mut self, other: Self) {
        self.queries = self.queries.saturating_add(other.queries);
        self.joins = self.joins.saturating_add(other.joins);
        self.set_operations = self.set_operations.saturating_add(other.set_operations);
    }
}

/// A query that the walk is in.
#[derive(Default)]
struct Frame {
    /// The queries that its WITH names, by their address in memory.
    names: HashMap<*const Query, String>,
    /// The counts of these queries.
    ctes: HashMap<String, Planned>,
    planned: Planned,
}

impl Visitor for Size {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let before = (self.joins, self.set_operations);
        self.ctes += query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        self.go_on(check_count(self.ctes, CTES_MAX, "the number of queries in WITH", "queries"))?;
        let mut bodies = vec![&*query.body];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => {
                    self.set_operations += 1;
                    bodies.extend([&**left, &**right]);
                }
                SetExpr::Select(select) => {
                    let what = "the number of values that a SELECT lists";
                    self.go_on(check_count(select.projection.len(), SELECTED_MAX, what, "values"))?;
                    let tables = select.from.iter().map(|table| 1 + table.joins.len());
                    self.joins += tables.sum::<usize>().saturating_sub(1);
                }
                _ => {}
            }
        }
        let what = "the number of UNION, EXCEPT and INTERSECT";
        self.go_on(check_count(self.set_operations, SET_OPERATIONS_MAX, what, "of them"))?;
        self.joins_are_few()?;
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = ctes.map(|cte| (&raw const *cte.query, folded(&cte.alias.name))).collect();
        let planned = Planned {
            queries: 1,
            joins: self.joins - before.0,
            set_operations: self.set_operations - before.1,
        };
        self.around.push(Frame { names, ctes: HashMap::new(), planned });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(Frame { planned, .. }) = self.around.pop() else { return ControlFlow::Continue(()) };
        let Some(outer) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        match outer.names.get(&(&raw const *query)) {
            Some(name) => {
                outer.ctes.insert(name.clone(), planned);
                ControlFlow::Continue(())
            }
            None => self.plan(planned),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                let joins = table_with_joins.joins.len();
                self.joins += joins;
                self.joins_are_few()?;
                self.plan(Planned { joins, ..Planned::default() })
            }
            TableFactor::Table { name, .. } => {
                let table = Planned { queries: 1, ..Planned::default() };
                self.plan(self.named(name).unwrap_or(table))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cube(keys) = expr {
            self.go_on(check_count(keys.len(), CUBE_KEYS_MAX, "the number of keys of CUBE", "keys"))?;
        }
        self.levels += 1;
        self.go_on(check_count(self.levels, EXPRESSION_LEVELS_MAX, "the depth of an expression", "levels"))
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

impl Size {
    /// Returns the counts of a query in WITH by its name.
    fn named(&self, name: &ObjectName) -> Option<Planned> {
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
        let name = folded(name);
        self.around.iter().rev().find_map(|frame| frame.ctes.get(&name).copied())
    }

    /// Adds to the counts of the innermost query.
    fn plan(&mut self, more: Planned) -> ControlFlow<()> {
        let Some(frame) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        frame.planned += more;
        let Planned { queries, joins, set_operations } = frame.planned;
        let where_named = "after each query in WITH is put where it is named";
        let checked =
            check_count(queries, PLANNED_QUERIES_MAX, "the number of queries and tables", where_named)
                .and_then(|()| check_count(joins, JOINS_MAX, "the number of joins", where_named))
                .and_then(|()| {
                    check_count(set_operations, SET_OPERATIONS_MAX, "the number of UNION", where_named)
                });
        self.go_on(checked)
    }

    fn joins_are_few(&mut self) -> ControlFlow<()> {
        self.go_on(check_count(self.joins, JOINS_MAX, "the number of joins", "joins"))
    }

    /// Keeps an error and stops the walk.
    fn go_on(&mut self, checked: Result<(), QueryError>) -> ControlFlow<()> {
        self.error = checked.err();
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
