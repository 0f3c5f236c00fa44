//! How large a statement may be beyond its length. The parser bounds what stands in parentheses. What it reads one after the other
//! becomes deep as well: `a OR b OR c` is an OR within an OR, each CTE may read the one before, and each join is within the next.
//! Planning walks all of that with frames on a stack, and takes ever longer for each further join: 500 are not planned in 30 s. A
//! query in WITH is planned again wherever it is named, so what counts is how much there is after that: of queries that name the one
//! before twice there are soon billions.

use std::collections::HashMap;
use std::ops::{AddAssign, ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableFactor, Visitor,
};

use super::within;
use crate::QueryError;
use crate::postgres::folded;
use crate::walk::walk;

/// Deepest expression.
pub(super) const EXPRESSION_LEVELS_MAX: usize = 1_000;
/// Most UNION, EXCEPT and INTERSECT.
pub(super) const SET_OPERATIONS_MAX: usize = 500;
/// Most tables that are joined to others.
pub(super) const JOINS_MAX: usize = 100;
/// Most queries in WITH.
pub(super) const CTES_MAX: usize = 100;
/// Most queries and tables, with each query in WITH wherever it is named.
pub(super) const PLANNED_QUERIES_MAX: usize = 2_000;
/// Most values that a SELECT lists, as in PostgreSQL: each is compared with all others while the statement is planned.
pub(super) const SELECTED_MAX: usize = 1_664;
/// Most keys of a CUBE: it groups by each set of them, and the planner takes 4,096 sets.
pub(super) const CUBE_KEYS_MAX: usize = 12;

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
    /// Queries around what is looked at.
    around: Vec<Frame>,
    error: Option<QueryError>,
}

/// What planning goes through.
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

/// A query that is looked at.
#[derive(Default)]
struct Frame {
    /// The names that its WITH gives to queries, by where those are in memory.
    names: HashMap<*const Query, String>,
    /// What stands for these names.
    ctes: HashMap<String, Planned>,
    planned: Planned,
}

impl Visitor for Size {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let before = (self.joins, self.set_operations);
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
                    let what = "the number of values that a SELECT lists";
                    self.go_on(within(select.projection.len(), SELECTED_MAX, what, "values"))?;
                    let tables = select.from.iter().map(|table| 1 + table.joins.len());
                    self.joins += tables.sum::<usize>().saturating_sub(1);
                }
                _ => {}
            }
        }
        let what = "the number of UNION, EXCEPT and INTERSECT";
        self.go_on(within(self.set_operations, SET_OPERATIONS_MAX, what, "of them"))?;
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
            self.go_on(within(keys.len(), CUBE_KEYS_MAX, "the number of keys of CUBE", "keys"))?;
        }
        self.levels += 1;
        self.go_on(within(self.levels, EXPRESSION_LEVELS_MAX, "the depth of an expression", "levels"))
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

impl Size {
    /// What stands for a name, if a WITH around has given it.
    fn named(&self, name: &ObjectName) -> Option<Planned> {
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
        let name = folded(name);
        self.around.iter().rev().find_map(|frame| frame.ctes.get(&name).copied())
    }

    /// Counts what the innermost query has more.
    fn plan(&mut self, more: Planned) -> ControlFlow<()> {
        let Some(frame) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        frame.planned += more;
        let Planned { queries, joins, set_operations } = frame.planned;
        let where_named = "after each query in WITH is put where it is named";
        let within = within(queries, PLANNED_QUERIES_MAX, "the number of queries and tables", where_named)
            .and_then(|()| within(joins, JOINS_MAX, "the number of joins", where_named))
            .and_then(|()| within(set_operations, SET_OPERATIONS_MAX, "the number of UNION", where_named));
        self.go_on(within)
    }

    fn joins_are_few(&mut self) -> ControlFlow<()> {
        self.go_on(within(self.joins, JOINS_MAX, "the number of joins", "joins"))
    }

    /// Keeps an error and stops the walk.
    fn go_on(&mut self, within: Result<(), QueryError>) -> ControlFlow<()> {
        self.error = within.err();
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
