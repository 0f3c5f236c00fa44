//! From PostgreSQL's SQL about its catalog to SQL that the planner understands.
//!
//! It works on the parsed statement, from the inside out, and makes nothing deeper than a constant number of levels.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, Select, SelectItem, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::casts::{object_cast, operator, type_of_catalog};
use super::{columns, empty, functions};
use crate::functions::Functions;
use crate::parsed::{call, literal, named, take};
use crate::walk::{walk, walk_mut};

const SHOW_TABLES: &str = "SELECT table_catalog, table_schema, table_name, table_type \
    FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name";

/// Drivers count the elements of the catalog's arrays in FROM.
const BOUNDS: [&str; 2] = ["array_lower", "array_upper"];

/// Rewrites a statement that names something of the catalog, and leaves all others as they are.
pub(crate) fn rewrite(statement: &mut Statement, functions: &Functions) {
    match statement {
        // The planner's own answer would list the schemas that describe the tables as well.
        Statement::Statement(inner)
            if matches!(**inner, ast::Statement::ShowTables { .. }) && inner.to_string() == "SHOW TABLES" =>
        {
            **inner = ast::Statement::Query(Box::new(parsed_query(SHOW_TABLES)));
        }
        Statement::Statement(statement) if walk(&**statement, &mut Search).is_break() => {
            // It never stops early.
            let _ = walk_mut(&mut **statement, &mut Rewrite { functions });
        }
        Statement::Explain(explain) => rewrite(&mut explain.statement, functions),
        _ => {}
    }
}

/// Looks for a name of the catalog.
struct Search;

impl Visitor for Search {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        stop_if(is_table_of_catalog(name))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        stop_if(match expr {
            Expr::Function(call) => {
                let name = last(&call.name);
                is_of_catalog(&call.name) || functions::is_known(&name) || BOUNDS.contains(&name.as_str())
            }
            Expr::Cast { data_type, .. } | Expr::TypedString(ast::TypedString { data_type, .. }) => {
                matches!(data_type, DataType::Custom(..) | DataType::Regclass)
            }
            Expr::Collate { .. } => true,
            Expr::BinaryOp { op, .. } => matches!(op, BinaryOperator::PGCustomBinaryOperator(_)),
            _ => false,
        })
    }
}

fn stop_if(found: bool) -> ControlFlow<()> {
    if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

struct Rewrite<'a> {
    functions: &'a Functions,
}

impl VisitorMut for Rewrite<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(is_in) = among(expr) {
            *expr = is_in;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        empty::clear_expr(expr);
        empty::clear_case(expr);
        match expr {
            Expr::Function(call) => {
                unqualify(&mut call.name);
                if let Some(list) = list_of_subquery(call) {
                    *expr = list;
                }
            }
            Expr::Collate { expr: inner, .. } => {
                let inner = std::mem::replace(&mut **inner, literal(Value::Null));
                *expr = inner;
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(name) = op
                    && let Some(known) = name.last().and_then(|name| operator(name))
                {
                    *op = known;
                }
            }
            Expr::Cast { expr: inner, data_type, .. } => {
                if let Some(cast) = object_cast(inner, data_type) {
                    *expr = cast;
                } else if let Some(known) = type_of_catalog(data_type) {
                    *data_type = known;
                }
            }
            Expr::TypedString(typed) => {
                let mut inner = Expr::Value(typed.value.clone());
                if let Some(cast) = object_cast(&mut inner, &typed.data_type) {
                    *expr = cast;
                }
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                if let Some(escape) = escape_char.take() {
                    **pattern = call("like_pattern", vec![take(pattern), Expr::Value(escape)]);
                }
            }
            Expr::Subquery(query) => one_row(query, self.functions),
            Expr::InSubquery { expr: inner, subquery, negated } if reads_no_table(subquery) => {
                if let Some(any) = in_list(inner, subquery, *negated) {
                    *expr = any;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } = factor {
            unqualify(name);
            if let Some(derived) = self.table_of_function(factor) {
                *factor = derived;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        empty::clear_select(select, self.functions);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        empty::clear_query(query);
        ControlFlow::Continue(())
    }
}

impl Rewrite<'_> {
    /// A function in FROM. One that gives rows has a column with the name of its alias; another one gives one row.
    fn table_of_function(&self, factor: &mut TableFactor) -> Option<TableFactor> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else { return None };
        let function = last(name);
        if self.functions.table.contains_key(&function) {
            if let Some(alias) = alias.as_mut().filter(|alias| alias.columns.is_empty()) {
                alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
            }
            return None;
        }
        let name = alias.as_ref().map_or_else(|| Ident::new(&function), |alias| alias.name.clone());
        let column = alias
            .as_ref()
            .and_then(|alias| alias.columns.first())
            .map_or(&name, |column| &column.name)
            .clone();
        let is_nothing = function == "unnest" && args.args.iter().all(|argument| {
            matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) if empty::is_null_list(list))
        });
        let (call, mut query) = if is_nothing {
            (parsed("CAST(NULL AS TEXT)"), parsed_query("SELECT NULL WHERE false"))
        } else {
            (
                Expr::Function(crate::parsed::function(named(&function), args.args.clone())),
                parsed_query("SELECT NULL"),
            )
        };
        if let ast::SetExpr::Select(select) = &mut *query.body {
            select.projection = vec![SelectItem::ExprWithAlias { expr: call, alias: column }];
        }
        let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
        Some(TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query),
            alias: Some(alias),
            sample: None,
        })
    }
}

fn is_of_catalog(name: &ObjectName) -> bool {
    let first = name.0.iter().rev().nth(1).and_then(ObjectNamePart::as_ident);
    first.is_some_and(|part| {
        part.value.eq_ignore_ascii_case(columns::PG_CATALOG_NAME)
            || part.value.eq_ignore_ascii_case(columns::INFORMATION_SCHEMA_NAME)
    })
}

/// Looks for a table that is not of the catalog.
struct OtherTables;

impl Visitor for OtherTables {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        stop_if(!is_table_of_catalog(name))
    }
}

fn is_table_of_catalog(name: &ObjectName) -> bool {
    is_of_catalog(name) || (name.0.len() == 1 && columns::in_pg_catalog(&last(name)).is_some())
}

/// The last part of a name, in small letters unless it has quotes.
pub(super) fn last(name: &ObjectName) -> String {
    name.0.last().and_then(ObjectNamePart::as_ident).map_or_else(String::new, |part| match part.quote_style {
        Some(_) => part.value.clone(),
        None => part.value.to_ascii_lowercase(),
    })
}

/// Functions have one name here.
fn unqualify(name: &mut ObjectName) {
    if is_of_catalog(name) {
        *name = ObjectName::from(vec![Ident::new(last(name))]);
    }
}

/// `x = ANY (...)` and `x <> ALL (...)` as IN, where the planner finds out about types. Other comparisons with all rows of
/// a subquery become comparisons with a list.
fn among(expr: &mut Expr) -> Option<Expr> {
    let (left, compare_op, right, negated) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return None,
    };
    let is_in = *compare_op == if negated { BinaryOperator::NotEq } else { BinaryOperator::Eq };
    match &mut **right {
        Expr::Subquery(query) if is_in => {
            let subquery = query.clone();
            Some(Expr::InSubquery { expr: Box::new(take(left)), subquery, negated })
        }
        Expr::Subquery(query) => {
            let list = Expr::Subquery(Box::new(listed(query)?));
            **right = Expr::Nested(Box::new(list));
            None
        }
        Expr::Array(list) if is_in => {
            let list = std::mem::take(&mut list.elem);
            Some(Expr::InList { expr: Box::new(take(left)), list, negated })
        }
        _ => None,
    }
}

/// A subquery that stands for a value gives one row at the most. The planner wants to see that, so the value becomes the
/// largest of one. Only for the catalog: clients know that there is one.
fn one_row(query: &mut Query, functions: &Functions) {
    let is_plain = query.limit_clause.is_none() && query.order_by.is_none() && query.fetch.is_none();
    if let ast::SetExpr::Select(select) = &mut *query.body
        && is_plain
        && walk(&select.from, &mut OtherTables).is_continue()
        && !select.from.is_empty()
        && !empty::has_groups(select)
        && !empty::aggregates(select, functions)
        && let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
            select.projection.as_mut_slice()
    {
        *expr = call("max", vec![take(expr)]);
    }
}

/// `ARRAY(SELECT ...)`
fn list_of_subquery(call: &Function) -> Option<Expr> {
    let FunctionArguments::Subquery(query) = &call.args else { return None };
    if last(&call.name) != "array" {
        return None;
    }
    if empty::is_clear(query) {
        return Some(parsed("array_remove(make_array(''), '')"));
    }
    listed(query).map(|query| Expr::Subquery(Box::new(query)))
}

/// `x IN (SELECT ...)` as `x = ANY ((SELECT array_agg(...)))`, which can stand anywhere.
fn in_list(inner: &mut Expr, subquery: &Query, negated: bool) -> Option<Expr> {
    let list = Expr::Subquery(Box::new(listed(subquery)?));
    let is_in = call("array_has", vec![Expr::Nested(Box::new(list)), take(inner)]);
    Some(if negated { Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(is_in) } } else { is_in })
}

/// A query of one column as one list.
pub(super) fn listed(query: &Query) -> Option<Query> {
    let mut outer = parsed_query("SELECT array_agg(x) FROM (SELECT NULL) AS listed (x)");
    let ast::SetExpr::Select(select) = &mut *outer.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else { return None };
    **subquery = query.clone();
    Some(outer)
}

/// Whether a query reads nothing but functions, so that it is the same for every row around it.
fn reads_no_table(query: &Query) -> bool {
    struct Tables;
    impl Visitor for Tables {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            stop_if(matches!(factor, TableFactor::Table { args: None, .. }))
        }
    }
    let has_from = matches!(&*query.body, ast::SetExpr::Select(select) if !select.from.is_empty());
    has_from && walk(query, &mut Tables).is_continue()
}

/// An expression of ours.
pub(super) fn parsed(text: &'static str) -> Expr {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
    parsed.unwrap_or_else(|_| literal(Value::Null))
}

fn parsed_query(text: &'static str) -> Query {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    parsed.map_or_else(|_| unreachable!("{text}"), |query| *query)
}
