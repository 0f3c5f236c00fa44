//! Names in an expression of ORDER BY.
//!
//! `SELECT -n AS n FROM t ORDER BY n` sorts by the column of the answer, and `ORDER BY n + 0` by that of the table: in PostgreSQL only a name
//! alone is one of the answer. DataFusion's planner looks in the answer first. Where the table has no such column, its choice stays.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Visitor, VisitorMut,
};

use crate::QueryError;
use crate::functions::{Functions, kept_cast};
use crate::parsed::{call, number};
use crate::postgres::{folded, name_of};
use crate::walk::{walk, walk_mut};

/// Replaces an expression of ORDER BY that is one of the SELECT list by its position, if it has the name of a column of the answer in it:
/// `SELECT max(n) AS n FROM t ORDER BY max(n)`. DataFusion's planner would look for the maximum of the maximum.
pub(crate) fn by_position(statement: &mut Statement, functions: &Functions) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut Positions(functions));
        }
        Statement::Explain(explain) => by_position(&mut explain.statement, functions),
        _ => {}
    }
}

struct Positions<'a>(&'a Functions);

impl VisitorMut for Positions<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = &mut *query.body
            && let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by
        {
            keys.iter_mut().for_each(|key| to_position(&mut key.expr, &select.projection));
            select.projection.iter_mut().for_each(|item| keep_apart(item, keys, self.0));
        }
        ControlFlow::Continue(())
    }
}

fn to_position(key: &mut ast::Expr, items: &[SelectItem]) {
    if matches!(key, ast::Expr::Identifier(_) | ast::Expr::Value(_)) {
        return;
    }
    for (item, position) in items.iter().zip(1..) {
        let (expr, name) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, folded(alias)),
            SelectItem::UnnamedExpr(expr) => (expr, name_of(expr)),
            // What comes after a star has no known position.
            _ => return,
        };
        if expr == key && names(expr, &name) {
            *key = number(position);
            return;
        }
    }
}

/// Hides an item of the SELECT list that is a part of a key which also has the name of the item: `SELECT 3 AS n FROM t ORDER BY n % 3`.
/// DataFusion's planner would put the name in place of that part, too: `n % n`.
fn keep_apart(item: &mut SelectItem, keys: &[OrderByExpr], functions: &Functions) {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return };
    let name = folded(alias);
    let is_mixed =
        |key: &OrderByExpr| key.expr != *expr && names(&key.expr, &name) && has_part(&key.expr, expr);
    // Aggregates stay recognisable.
    if !aggregates(expr, functions) && keys.iter().any(is_mixed) {
        let hidden = std::mem::replace(expr, number(0));
        *expr = call(kept_cast::NAME, vec![hidden]);
    }
}

fn has_part(key: &ast::Expr, part: &ast::Expr) -> bool {
    struct Search<'a>(&'a ast::Expr);
    impl Visitor for Search<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            if expr == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    walk(key, &mut Search(part)).is_break()
}

/// Whether an expression calls a function for several rows.
fn aggregates(expr: &ast::Expr, functions: &Functions) -> bool {
    struct Search<'a>(&'a Functions);
    impl Visitor for Search<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            match expr {
                ast::Expr::Function(call)
                    if call.over.is_some() || self.0.aggregate.contains_key(&name_of(expr)) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expr, &mut Search(functions)).is_break()
}

/// Whether an expression has a name in it.
fn names(expr: &ast::Expr, name: &str) -> bool {
    struct Search<'a>(&'a str);
    impl Visitor for Search<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            match expr {
                ast::Expr::Identifier(found) if folded(found) == self.0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expr, &mut Search(name)).is_break()
}

/// Sorts by the columns that PostgreSQL sorts by.
pub(crate) fn settle(plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    let settled = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Sort(sort) => of_sort(sort),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(settled.data)
}

fn of_sort(mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = &*sort.input else {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    };
    let mut read: Vec<Column> = Vec::new();
    let mut keys = sort.expr.clone();
    for key in keys.iter_mut().filter(|key| !matches!(key.expr, Expr::Column(_))) {
        let expr = std::mem::take(&mut key.expr);
        key.expr = expr.transform(|expr| of_input(expr, projection, &mut read))?.data;
    }
    if read.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let shown = projection.schema.columns().into_iter().map(Expr::Column).collect();
    let mut items = projection.expr.clone();
    items.extend(
        read.into_iter().enumerate().map(|(index, column)| Expr::Column(column).alias(hidden_name(index))),
    );
    sort.input =
        Arc::new(LogicalPlan::Projection(Projection::try_new(items, Arc::clone(&projection.input))?));
    sort.expr = keys;
    let sorted = Arc::new(LogicalPlan::Sort(sort));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, sorted)?)))
}

/// Replaces the name of an item of the SELECT list by the column of the input that has this name.
fn of_input(expr: Expr, projection: &Projection, read: &mut Vec<Column>) -> Result<Transformed<Expr>> {
    let Expr::Column(name) = &expr else { return Ok(Transformed::no(expr)) };
    let item = projection.expr.iter().find_map(|item| match item {
        Expr::Alias(alias) if alias.relation == name.relation && alias.name == name.name => {
            Some(&*alias.expr)
        }
        _ => None,
    });
    let input = &projection.input;
    if name.relation.is_some()
        || item.is_none()
        || !input.schema().has_column_with_unqualified_name(&name.name)
    {
        return Ok(Transformed::no(expr));
    }
    let column = Column::from_name(&name.name)
        .normalize_with_schemas_and_ambiguity_check(&[&[input.schema()]], &input.using_columns()?)?;
    if item == Some(&Expr::Column(column.clone())) {
        return Ok(Transformed::no(expr));
    }
    let index = read.iter().position(|known| *known == column).unwrap_or_else(|| {
        read.push(column);
        read.len() - 1
    });
    Ok(Transformed::yes(Expr::Column(Column::from_name(hidden_name(index)))))
}

/// The name of a column that only the sort reads. No name in a statement can begin with it.
fn hidden_name(index: usize) -> String {
    format!("\u{1}order{index}")
}
