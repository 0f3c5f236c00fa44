//! Plans `SELECT *` of one table without the projection that DataFusion makes for it.
//!
//! Planner and optimiser look each column of a projection up among all others, several times: a table with 20,000 columns would
//! take half a minute to plan. A projection of all columns changes nothing. So the statement is planned with a short list in place
//! of `*`, and the projection is then removed from the plan.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, Value, WildcardAdditionalOptions,
};

use crate::postgres::folded;

/// Returns the statement with a short list in place of `*`. Returns `None` unless it is `SELECT *` of one table with conditions, an
/// ORDER BY of columns and a limit.
pub(crate) fn narrowed(statement: &Statement) -> Option<Statement> {
    let Statement::Statement(statement) = statement else { return None };
    let SqlStatement::Query(query) = &**statement else { return None };
    let Query { with: None, body, order_by, .. } = &**query else { return None };
    let SetExpr::Select(select) = &**body else { return None };
    if !is_plain(select) || !query.pipe_operators.is_empty() {
        return None;
    }
    let list = listed(order_by.as_ref())?;
    let mut select = select.clone();
    select.projection = list;
    let query = Query { body: Box::new(SetExpr::Select(select)), ..Query::clone(query) };
    Some(Statement::Statement(Box::new(SqlStatement::Query(Box::new(query)))))
}

/// Removes the projection from the plan of a narrowed statement, so that it returns all columns. Returns `None` if the plan has
/// another form.
pub(crate) fn widened(plan: LogicalPlan) -> Option<LogicalPlan> {
    let below = |input| widened(Arc::unwrap_or_clone(input)).map(Arc::new);
    match plan {
        LogicalPlan::Limit(mut limit) => {
            limit.input = below(limit.input)?;
            Some(LogicalPlan::Limit(limit))
        }
        LogicalPlan::Sort(mut sort) => {
            sort.input = below(sort.input)?;
            Some(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Projection(projection) => Some(Arc::unwrap_or_clone(projection.input)),
        _ => None,
    }
}

fn is_plain(select: &Select) -> bool {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if has_no_options(options));
    let is_table = |factor: &TableFactor| match factor {
        TableFactor::Table { args: None, alias, sample: None, with_ordinality: false, .. } => {
            alias.as_ref().is_none_or(|alias| alias.columns.is_empty())
        }
        _ => false,
    };
    let of_one_table = matches!(&*select.from, [from] if from.joins.is_empty() && is_table(&from.relation));
    let is_grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(expressions, modifiers) => !expressions.is_empty() || !modifiers.is_empty(),
    };
    matches!(&*select.projection, [item] if is_wildcard(item))
        && of_one_table
        && !is_grouped
        && select.distinct.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
        && select.named_window.is_empty()
        && select.lateral_views.is_empty()
        && select.connect_by.is_empty()
}

fn has_no_options(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}

/// Returns the columns of an ORDER BY, each once, or a constant. Other expressions may need columns that only `*` has.
fn listed(order: Option<&OrderBy>) -> Option<Vec<SelectItem>> {
    let Some(order) = order else {
        return Some(vec![SelectItem::UnnamedExpr(Expr::value(Value::Boolean(true)))]);
    };
    let OrderBy { kind: OrderByKind::Expressions(expressions), interpolate: None } = order else {
        return None;
    };
    let column = |expr: &Expr| match expr {
        Expr::Identifier(name) => Some(name.clone()),
        _ => None,
    };
    let columns: Vec<Ident> = expressions.iter().map(|by| column(&by.expr)).collect::<Option<_>>()?;
    let mut seen = HashSet::new();
    let columns = columns.into_iter().filter(|name| seen.insert(folded(name)));
    Some(columns.map(|name| SelectItem::UnnamedExpr(Expr::Identifier(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(sql: &str) -> Option<String> {
        narrowed(&crate::statement::parse(sql).unwrap()).map(|statement| statement.to_string())
    }

    #[test]
    fn select_star_of_one_table_is_recognised() {
        for (sql, expected) in [
            ("SELECT * FROM t", "SELECT true FROM t"),
            ("SELECT * FROM t AS u WHERE a > 1 LIMIT 5", "SELECT true FROM t AS u WHERE a > 1 LIMIT 5"),
            (
                "SELECT * FROM t ORDER BY ts DESC, \"A\", TS LIMIT 1 OFFSET 2",
                "SELECT ts, \"A\" FROM t ORDER BY ts DESC, \"A\", TS LIMIT 1 OFFSET 2",
            ),
        ] {
            assert_eq!(narrow(sql).as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn other_statements_stay_unchanged() {
        for sql in [
            "SELECT a FROM t",
            "SELECT *, a FROM t",
            "SELECT t.* FROM t",
            "SELECT DISTINCT * FROM t",
            "SELECT * FROM t, u",
            "SELECT * FROM t JOIN u ON t.a = u.a",
            "SELECT * FROM t AS u (a, b)",
            "SELECT * FROM generate_series(1, 2)",
            "SELECT * FROM (SELECT 1) AS s",
            "WITH t AS (SELECT 1) SELECT * FROM t",
            "SELECT * FROM t UNION SELECT * FROM t",
            "SELECT * FROM t GROUP BY a",
            "SELECT * FROM t ORDER BY 1",
            "SELECT * FROM t ORDER BY a + 1",
            "EXPLAIN SELECT * FROM t",
        ] {
            assert_eq!(narrow(sql), None, "{sql}");
        }
    }
}
