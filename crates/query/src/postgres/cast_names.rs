//! Tells columns apart that differ in a cast only.
//!
//! `SELECT max(n), max(n::text)` and `GROUP BY ts, ts::date` would have two columns with one name in DataFusion, which leaves casts out of
//! names. Casts of such columns are enclosed in a function that stays in the name.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, OrderBy, Query, Select, SelectItem, SetExpr, VisitMut, VisitorMut,
};

use crate::functions::{Functions, kept_cast};
use crate::parsed::{call, last_part, take};
use crate::walk::walk_mut;

/// Encloses casts where columns would have the same name without them.
pub(crate) fn keep_casts(statement: &mut Statement, functions: &Functions) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut Queries { functions });
        }
        Statement::Explain(explain) => keep_casts(&mut explain.statement, functions),
        _ => {}
    }
}

struct Queries<'a> {
    functions: &'a Functions,
}

impl VisitorMut for Queries<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.in_body(&mut query.body, query.order_by.as_mut());
        ControlFlow::Continue(())
    }
}

impl Queries<'_> {
    /// Queries in parentheses are visited separately.
    fn in_body(&self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) {
        match body {
            SetExpr::Select(select) => self.in_select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.in_body(left, None);
                self.in_body(right, None);
            }
            _ => {}
        }
    }

    fn in_select(&self, select: &mut Select, mut order_by: Option<&mut OrderBy>) {
        let from = std::mem::take(&mut select.from);
        let mut found = Found { functions: self.functions, columns: Vec::new(), has_casts: false, depth: 0 };
        found.read(select);
        order_by.iter_mut().for_each(|order_by| found.read(*order_by));
        if found.has_casts {
            found.columns.extend(keys(select));
            let casts = casts_to_keep(found.columns);
            if !casts.is_empty() {
                let mut keep = Keep { casts: &casts, depth: 0 };
                // The visitor never stops early.
                let _ = walk_mut(select, &mut keep);
                if let Some(order_by) = order_by {
                    let _ = walk_mut(order_by, &mut keep);
                }
            }
        }
        select.from = from;
    }
}

/// The keys of GROUP BY, which may be positions and names of the SELECT list.
fn keys(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return Vec::new() };
    if keys.is_empty() {
        return Vec::new();
    }
    let items = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    items.chain(keys).cloned().collect()
}

/// The casts in expressions that differ in casts only.
fn casts_to_keep(columns: Vec<Expr>) -> Vec<Expr> {
    let mut by_name: HashMap<String, Vec<Expr>> = HashMap::new();
    for column in columns {
        let mut name = column.clone();
        // The visitor never stops early.
        let _ = walk_mut(&mut name, &mut WithoutCasts);
        let same = by_name.entry(name.to_string().to_ascii_lowercase()).or_default();
        if !same.contains(&column) {
            same.push(column);
        }
    }
    let mut casts = Casts(Vec::new());
    for mut column in by_name.into_values().filter(|same| same.len() > 1).flatten() {
        // The visitor never stops early.
        let _ = walk_mut(&mut column, &mut casts);
    }
    casts.0
}

/// Finds aggregates and window functions, and whether there are casts.
struct Found<'a> {
    functions: &'a Functions,
    columns: Vec<Expr>,
    has_casts: bool,
    /// The number of subqueries around.
    depth: usize,
}

impl Found<'_> {
    fn read(&mut self, node: &mut impl VisitMut) {
        // The visitor never stops early.
        let _ = walk_mut(node, self);
    }
}

impl VisitorMut for Found<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { .. } => self.has_casts = true,
            Expr::Function(call)
                if self.depth == 0
                    && (call.over.is_some()
                        || self.functions.aggregate.contains_key(&last_part(&call.name))) =>
            {
                self.columns.push(expr.clone());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Makes expressions equal that DataFusion gives the same name.
struct WithoutCasts;

impl VisitorMut for WithoutCasts {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => *expr = take(inner),
            Expr::CompoundIdentifier(parts) => {
                if let Some(name) = parts.pop() {
                    *expr = Expr::Identifier(name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

struct Casts(Vec<Expr>);

impl VisitorMut for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Cast { .. }) && !self.0.contains(expr) {
            self.0.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

struct Keep<'a> {
    casts: &'a [Expr],
    /// The number of subqueries around.
    depth: usize,
}

impl VisitorMut for Keep<'_> {
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
        if self.depth == 0 && self.casts.contains(expr) {
            *expr = call(kept_cast::NAME, vec![take(expr)]);
        }
        ControlFlow::Continue(())
    }
}
