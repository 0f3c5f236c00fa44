//! Qualifies the names of common columns in a statement.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

use super::alias;
use super::planner::JoinPlanner;
use super::wrap::{constraint_of, constraint_of_mut};
use crate::parsed::last_part;
use crate::postgres::{folded, name_of};
use crate::walk::walk_mut;

/// A common column: its name, and the alias of its join.
struct Common {
    name: String,
    alias: Ident,
}

pub(super) struct Qualify;

impl VisitorMut for Qualify {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        in_body(&mut query.body, query.order_by.as_mut());
        ControlFlow::Continue(())
    }
}

/// Queries in parentheses are visited separately. An ORDER BY of a set operation names its columns.
fn in_body(body: &mut SetExpr, order_by: Option<&mut OrderBy>) {
    match body {
        SetExpr::Select(select) => in_select(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left, None);
            in_body(right, None);
        }
        _ => {}
    }
}

fn in_select(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let mut from = std::mem::take(&mut select.from);
    let common = of_sources(from.iter_mut().map(of_joins));
    if !common.is_empty() {
        if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
            // A name alone is that of a column of the answer.
            let is_output =
                |expr: &Expr| matches!(expr, Expr::Identifier(name) if gives(&select.projection, name));
            keys.iter_mut()
                .filter(|key| !is_output(&key.expr))
                .for_each(|key| qualify(&mut key.expr, &common));
        }
        qualify(select, &common);
    }
    select.from = from;
}

/// Whether a SELECT list has a column with this name.
fn gives(items: &[SelectItem], name: &Ident) -> bool {
    items.iter().any(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => folded(alias) == folded(name),
        SelectItem::UnnamedExpr(expr) => name_of(expr) == folded(name),
        _ => false,
    })
}

/// The common columns that a FROM shows, and names in its conditions qualified.
fn of_joins(from: &mut TableWithJoins) -> Vec<Common> {
    let mut common = of_factor(&mut from.relation);
    for join in &mut from.joins {
        common = of_sources([common, of_factor(&mut join.relation)].into_iter());
        if let Some(JoinConstraint::On(condition)) = constraint_of_mut(&mut join.join_operator) {
            qualify(condition, &common);
        }
    }
    common
}

fn of_factor(factor: &mut TableFactor) -> Vec<Common> {
    let TableFactor::NestedJoin { table_with_joins, alias } = factor else { return Vec::new() };
    match alias {
        None => of_joins(table_with_joins),
        Some(alias) if alias::is_ours(alias) => {
            let mut common = of_joins(table_with_joins);
            let keys = table_with_joins.joins.last().and_then(|join| constraint_of(&join.join_operator));
            if let Some(JoinConstraint::Using(keys)) = keys {
                let keys: Vec<String> = keys.iter().map(last_part).collect();
                common.retain(|column| !keys.contains(&column.name));
                common.extend(keys.into_iter().map(|name| Common { name, alias: alias.name.clone() }));
            }
            common
        }
        Some(_) => Vec::new(),
    }
}

/// The common columns of several sources. A name of two is ambiguous, and DataFusion says so.
fn of_sources(sources: impl Iterator<Item = Vec<Common>>) -> Vec<Common> {
    let mut all: Vec<Common> = Vec::new();
    for column in sources.flatten() {
        let before = all.len();
        all.retain(|other| other.name != column.name);
        if all.len() == before {
            all.push(column);
        }
    }
    all
}

fn qualify(node: &mut impl VisitMut, common: &[Common]) {
    // The visitor never stops early.
    let _ = walk_mut(node, &mut Names { common, depth: 0 });
}

struct Names<'a> {
    common: &'a [Common],
    /// The number of subqueries around. Their names may be those of their own tables.
    depth: usize,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
            && let Some(column) = self.common.iter().find(|column| column.name == folded(name))
        {
            *expr = Expr::CompoundIdentifier(vec![column.alias.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// Writes `USING (keys)` in place of NATURAL.
pub(super) struct NameKeys<'a> {
    pub(super) planner: &'a JoinPlanner,
    pub(super) is_changed: bool,
}

impl VisitorMut for NameKeys<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } = factor
            && let Some(keys) = self.planner.keys(&alias.name.value)
            && let Some(join) = table_with_joins.joins.last_mut()
            && let Some(constraint @ JoinConstraint::Natural) = constraint_of_mut(&mut join.join_operator)
        {
            let part = |key: String| ObjectNamePart::Identifier(Ident::with_quote('"', key));
            *constraint =
                JoinConstraint::Using(keys.into_iter().map(|key| ObjectName(vec![part(key)])).collect());
            self.is_changed = true;
        }
        ControlFlow::Continue(())
    }
}
