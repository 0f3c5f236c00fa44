//! Gives the columns of a SELECT PostgreSQL's names: `count`, `?column?`, and possibly the same name twice.
//!
//! DataFusion's own names (`count(*)`) cannot be written in an outer query or in ORDER BY, and they must be unique. So each column
//! gets PostgreSQL's name as its alias. Of several columns with the same name, all but the first get a suffix, which the answer
//! does not show.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, VisitorMut};

use super::headings::{folded, name_of};
use crate::walk::walk_mut;

/// Separates a name from the suffix. No name can contain it.
const MARK: char = '\u{1}';

/// Names the columns of all queries in a statement.
pub(crate) fn name_columns(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut Naming::default());
        }
        Statement::Explain(explain) => name_columns(&mut explain.statement),
        _ => {}
    }
}

/// Returns the columns of an answer without suffixes.
pub(crate) fn shown(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| field.name().contains(MARK)) {
        return Arc::clone(schema);
    }
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_name(shown_name(field.name())))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn shown_name(name: &str) -> Cow<'_, str> {
    match name.split_once(MARK) {
        Some((name, _)) => Cow::Owned(name.to_owned()),
        None => Cow::Borrowed(name),
    }
}

#[derive(Default)]
struct Naming {
    /// The positions of subqueries that are values or conditions: the names of their columns cannot be written anywhere.
    nameless: HashSet<*const Query>,
}

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Subquery(query)
        | Expr::Exists { subquery: query, .. }
        | Expr::InSubquery { subquery: query, .. } = expr
        {
            self.nameless.insert(std::ptr::from_ref(&**query));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let has_names = !self.nameless.remove(&std::ptr::from_ref(&*query));
        name_body(&mut query.body, has_names);
        ControlFlow::Continue(())
    }
}

/// Names the columns of a query. Queries in parentheses are visited separately.
fn name_body(body: &mut SetExpr, has_names: bool) {
    match body {
        SetExpr::Select(select) => name_select(select, has_names),
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left, has_names);
            name_body(right, has_names);
        }
        _ => {}
    }
}

fn name_select(select: &mut Select, has_names: bool) {
    let is_wild = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    // HAVING would confuse the alias of a cast column with the cast.
    let has_having = select.having.is_some();
    let ambiguous = ambiguous_names(&select.projection);
    let mut taken = HashSet::new();
    for item in &mut select.projection {
        let (name, is_given, may_shadow) = match item {
            SelectItem::ExprWithAlias { alias, .. } => (folded(alias), true, false),
            SelectItem::UnnamedExpr(expr) => {
                let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let is_cast = matches!(expr, Expr::Cast { .. });
                let may_shadow = (is_wild && (is_column || is_cast)) || (has_having && is_cast);
                (name_of(expr), is_column, may_shadow)
            }
            _ => continue,
        };
        let is_taken = !taken.insert(name.clone()) || ambiguous.contains(&name);
        if is_given && !is_taken && !may_shadow {
            continue;
        }
        if !has_names && !is_taken && !may_shadow {
            continue;
        }
        let alias = if is_taken || may_shadow { format!("{name}{MARK}{}", taken.len()) } else { name };
        set_alias(item, taken_name(alias, &mut taken));
    }
}

/// Returns the names of several columns that are equal: this name is ambiguous.
fn ambiguous_names(items: &[SelectItem]) -> HashSet<String> {
    let mut first: HashMap<String, &Expr> = HashMap::with_capacity(items.len());
    let mut ambiguous = HashSet::new();
    for item in items {
        let (name, expr) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (folded(alias), expr),
            SelectItem::UnnamedExpr(expr) => (name_of(expr), expr),
            _ => continue,
        };
        match first.entry(name) {
            Entry::Occupied(known) if *known.get() != expr => {
                ambiguous.insert(known.key().clone());
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(expr);
            }
        }
    }
    ambiguous
}

/// Returns the name, or a similar one that no column has.
fn taken_name(alias: String, taken: &mut HashSet<String>) -> String {
    if !alias.contains(MARK) {
        return alias;
    }
    let mut alias = alias;
    while !taken.insert(alias.clone()) {
        alias.push('_');
    }
    alias
}

fn set_alias(item: &mut SelectItem, name: String) {
    let alias = Ident::with_quote('"', name);
    match item {
        SelectItem::ExprWithAlias { alias: old, .. } => *old = alias,
        SelectItem::UnnamedExpr(expr) => {
            let expr = crate::parsed::take(expr);
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sql: &str) -> String {
        let mut statement = crate::statement::parse(sql).unwrap();
        name_columns(&mut statement);
        statement.to_string().replace(MARK, "#")
    }

    #[test]
    fn columns_get_the_names_of_postgresql() {
        for (sql, expected) in [
            (
                "SELECT a, t.b, count(*), 1 + 1 FROM t",
                r#"SELECT a, t.b, count(*) AS "count", 1 + 1 AS "?column?" FROM t"#,
            ),
            ("SELECT 0, 0", r##"SELECT 0 AS "?column?", 0 AS "?column?#1""##),
            ("SELECT a, a, lower(a) FROM t", r##"SELECT a, a AS "a#1", lower(a) AS "lower" FROM t"##),
            ("SELECT a, b AS a FROM t", r##"SELECT a AS "a#1", b AS "a#2" FROM t"##),
            ("SELECT a::text FROM t ORDER BY a", r#"SELECT a::TEXT AS "a" FROM t ORDER BY a"#),
            ("SELECT *, a FROM t", r##"SELECT *, a AS "a#1" FROM t"##),
            ("SELECT 1 UNION SELECT 2", r#"SELECT 1 AS "?column?" UNION SELECT 2 AS "?column?""#),
            (
                "SELECT (SELECT max(a) FROM t) FROM (SELECT lower(b) FROM u) s",
                r#"SELECT (SELECT max(a) FROM t) AS "max" FROM (SELECT lower(b) AS "lower" FROM u) s"#,
            ),
            (
                "SELECT 1 WHERE EXISTS (SELECT 1, 1)",
                r##"SELECT 1 AS "?column?" WHERE EXISTS (SELECT 1, 1 AS "?column?#1")"##,
            ),
            ("EXPLAIN SELECT 1", r#"EXPLAIN SELECT 1 AS "?column?""#),
        ] {
            assert_eq!(named(sql), expected, "{sql}");
        }
    }

    #[test]
    fn answers_show_no_internal_marks() {
        let field = |name: &str| Field::new(name, arrow_schema::DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field(&format!("a{MARK}1"))]));
        let names: Vec<_> = shown(&schema).fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["a", "a"]);
    }
}
