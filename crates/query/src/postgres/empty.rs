//! Simplifies queries of system tables that are always empty: indexes, constraints, triggers, descriptions.
//!
//! Drivers query them with subqueries and functions that DataFusion does not know. A SELECT from such a table returns no rows, so
//! the rest of it is dropped: `SELECT a, f(b) AS c FROM pg_index, ... WHERE ...` becomes `SELECT NULL::text AS a, NULL::text AS c
//! WHERE false`. The columns keep their names, not their types.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr,
    SetOperator, TableFactor, TableWithJoins, Value, Visitor,
};

use super::columns;
use crate::functions::Functions;
use crate::parsed::{last_part, literal, parsed};
use crate::walk::walk;

/// The values of `typtype` that occur.
const PRESENT_KINDS: [&str; 2] = ["b", "p"];

/// Replaces a SELECT that returns no rows by one that is easily planned.
pub(super) fn clear_select(select: &mut Select, functions: &Functions) {
    let is_wild =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let has_no_rows =
        select.from.iter().any(is_empty_from) || select.selection.as_ref().is_some_and(wants_list);
    if !has_no_rows
        || select.projection.iter().any(is_wild)
        || (!has_groups(select) && (select.having.is_some() || aggregates(select, functions)))
    {
        return;
    }
    let mut taken = HashSet::new();
    let items = select.projection.iter().map(|item| {
        let mut name = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            SelectItem::UnnamedExpr(expr) => column_name(expr),
            _ => Ident::new("?column?"),
        };
        while !taken.insert(name.value.clone()) {
            name.value.push('_');
        }
        SelectItem::ExprWithAlias { expr: null(), alias: Ident::with_quote('"', name.value) }
    });
    select.projection = items.collect();
    select.from.clear();
    select.selection = Some(Expr::Value(Value::Boolean(false).into()));
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    (select.distinct, select.having) = (None, None);
    select.named_window.clear();
}

/// An ORDER BY may name columns that are no longer there.
pub(super) fn clear_query(query: &mut Query) {
    if is_clear_body(&query.body) {
        query.order_by = None;
    }
}

/// The value of a subquery without rows.
pub(super) fn clear_expr(expr: &mut Expr) {
    let replacement = match expr {
        Expr::Subquery(query) if is_clear(query) => null(),
        Expr::Exists { subquery, negated } if is_clear(subquery) => literal(Value::Boolean(*negated)),
        Expr::InSubquery { subquery, negated, .. } if is_clear(subquery) => literal(Value::Boolean(*negated)),
        _ => return,
    };
    *expr = replacement;
}

/// Removes CASE branches about domains and composite types, which the catalog does not have.
pub(super) fn clear_case(expr: &mut Expr) {
    let Expr::Case { operand: None, conditions, else_result, .. } = expr else { return };
    conditions.retain(|branch| !asks_absent_type(&branch.condition));
    if conditions.is_empty() {
        *expr = else_result.take().map_or_else(|| literal(Value::Null), |other| *other);
    }
}

/// Whether a condition is `typtype = 'd'` or similar.
fn asks_absent_type(condition: &Expr) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    let Expr::Value(kind) = &**right else { return false };
    let Value::SingleQuotedString(kind) = &kind.value else { return false };
    last_name(left).is_some_and(|name| name.value == "typtype") && !PRESENT_KINDS.contains(&kind.as_str())
}

/// Whether a query is known to return no rows.
pub(super) fn is_clear(query: &Query) -> bool {
    is_clear_body(&query.body)
}

fn is_clear_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            let is_false =
                matches!(&select.selection, Some(Expr::Value(value)) if value.value == Value::Boolean(false));
            is_false && select.from.is_empty() && select.projection.iter().all(is_null_text)
        }
        SetExpr::Query(query) => is_clear(query),
        SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } => {
            is_clear_body(left) && is_clear_body(right)
        }
        SetExpr::SetOperation { op: SetOperator::Intersect, left, right, .. } => {
            is_clear_body(left) || is_clear_body(right)
        }
        SetExpr::SetOperation { left, .. } => is_clear_body(left),
        _ => false,
    }
}

/// The expressions that [`clear_select`] puts into the list. An aggregate there would return a row.
fn is_null_text(item: &SelectItem) -> bool {
    match item {
        SelectItem::ExprWithAlias { expr: Expr::Cast { expr, .. }, .. } => {
            matches!(&**expr, Expr::Value(value) if value.value == Value::Null)
        }
        _ => false,
    }
}

fn is_empty_from(from: &TableWithJoins) -> bool {
    let mut is_empty = is_empty_factor(&from.relation);
    for join in &from.joins {
        let joined = is_empty_factor(&join.relation);
        is_empty = match &join.join_operator {
            JoinOperator::Join(_)
            | JoinOperator::Inner(_)
            | JoinOperator::CrossJoin(_)
            | JoinOperator::Semi(_)
            | JoinOperator::LeftSemi(_) => is_empty || joined,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => is_empty,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => joined,
            JoinOperator::FullOuter(_) => is_empty && joined,
            _ => false,
        };
    }
    is_empty
}

fn is_empty_factor(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => is_empty_table(name),
        TableFactor::Derived { subquery, .. } => is_clear(subquery),
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().all(is_null_list),
        TableFactor::NestedJoin { table_with_joins, .. } => is_empty_from(table_with_joins),
        _ => false,
    }
}

fn is_empty_table(name: &ObjectName) -> bool {
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
    let system = match parts.as_slice() {
        [.., columns::INFORMATION_SCHEMA_NAME, table] => columns::in_information_schema(table),
        [.., columns::PG_CATALOG_NAME, table] | [table] => columns::in_pg_catalog(table),
        _ => None,
    };
    system.is_some_and(|table| table.is_empty)
}

/// Whether a condition requires a list that is always NULL.
fn wants_list(condition: &Expr) -> bool {
    match condition {
        Expr::IsNotNull(list) => is_null_list(list),
        Expr::BinaryOp { op: BinaryOperator::And, left, right } => wants_list(left) || wants_list(right),
        _ => false,
    }
}

/// List columns of the catalog that are NULL in all rows.
pub(super) fn is_null_list(expr: &Expr) -> bool {
    const LISTS: [&str; 7] =
        ["reloptions", "relacl", "attacl", "attoptions", "attfdwoptions", "datacl", "nspacl"];
    last_name(expr).is_some_and(|name| LISTS.contains(&name.value.as_str()))
}

/// Returns the name of a column without the name of its table.
fn last_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

pub(super) fn has_groups(select: &Select) -> bool {
    !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
}

/// Whether an aggregate function is in the list, outside of subqueries. Then there is one row even without input.
pub(super) fn aggregates(select: &Select, functions: &Functions) -> bool {
    struct Search<'a> {
        functions: &'a Functions,
        depth: usize,
    }
    impl Visitor for Search<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(call)
                    if self.depth == 0
                        && call.over.is_none()
                        && self.functions.aggregate.contains_key(&last_part(&call.name)) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(&select.projection, &mut Search { functions, depth: 0 }).is_break()
}

/// Returns PostgreSQL's name of a column without an alias.
fn column_name(expr: &Expr) -> Ident {
    match expr {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().cloned().unwrap_or_else(|| Ident::new("?column?")),
        Expr::Function(call) => Ident::new(last_part(&call.name)),
        Expr::Cast { expr, .. } | Expr::Nested(expr) | Expr::Collate { expr, .. } => column_name(expr),
        Expr::Case { .. } => Ident::new("case"),
        _ => Ident::new("?column?"),
    }
}

fn null() -> Expr {
    parsed("CAST(NULL AS TEXT)")
}
