//! Rewrites PostgreSQL's SQL about its catalog to SQL that DataFusion understands.
//!
//! It changes the parsed statement from the inside out, and deepens it by a constant number of levels at most.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, Select, SelectItem, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Visitor, VisitorMut,
};

use super::casts::{object_cast, operator, type_of_catalog};
use super::{columns, empty, functions, keywords};
use crate::functions::Functions;
use crate::parsed::{call, last_part, literal, named, parsed, parsed_query, take};
use crate::walk::{walk, walk_mut};

const SHOW_TABLES: &str = "SELECT table_catalog, table_schema, table_name, table_type \
    FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name";

/// Drivers expand the arrays of the catalog with these functions in FROM.
const BOUNDS: [&str; 2] = ["array_lower", "array_upper"];

/// Rewrites a statement that names something of the catalog. Leaves all others as they are.
pub(crate) fn rewrite(statement: &mut Statement, functions: &Functions) {
    match statement {
        // DataFusion's answer would also list the system schemas.
        Statement::Statement(inner)
            if matches!(**inner, ast::Statement::ShowTables { .. }) && inner.to_string() == "SHOW TABLES" =>
        {
            **inner = ast::Statement::Query(Box::new(parsed_query(SHOW_TABLES)));
        }
        Statement::Statement(statement) if walk(&**statement, &mut Search).is_break() => {
            // The visitor never stops early.
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
        stop_if(is_table_of_catalog(name) || last_part(name) == keywords::FUNCTION)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        stop_if(match expr {
            Expr::Function(call) => {
                let name = last_part(&call.name);
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
        if let TableFactor::Table { name, args, alias, .. } = factor
            && args.is_some()
        {
            unqualify(name);
            if last_part(name) == keywords::FUNCTION {
                alias.get_or_insert_with(|| TableAlias {
                    explicit: true,
                    name: Ident::new(keywords::FUNCTION),
                    columns: Vec::new(),
                    at: None,
                });
                (*name, *args) = (named(keywords::TABLE), None);
                return ControlFlow::Continue(());
            }
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
    /// Rewrites a function in FROM. A function that returns rows has one column with the name of its alias. Another function
    /// returns one row.
    fn table_of_function(&self, factor: &mut TableFactor) -> Option<TableFactor> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else { return None };
        let function = last_part(name);
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
    is_of_catalog(name) || (name.0.len() == 1 && columns::in_pg_catalog(&last_part(name)).is_some())
}

/// Removes the schema from the name of a function.
fn unqualify(name: &mut ObjectName) {
    if is_of_catalog(name) {
        *name = ObjectName::from(vec![Ident::new(last_part(name))]);
    }
}

/// Rewrites `x = ANY (...)` and `x <> ALL (...)` to IN, where DataFusion resolves the types. Other comparisons with all rows of a
/// subquery become comparisons with a list.
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

/// Makes a subquery that stands for a value return one row. DataFusion must see that, so the value becomes the maximum. This is
/// done only for the catalog, where clients know that there is one row.
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

/// Rewrites `ARRAY(SELECT ...)`.
fn list_of_subquery(call: &Function) -> Option<Expr> {
    let FunctionArguments::Subquery(query) = &call.args else { return None };
    if last_part(&call.name) != "array" {
        return None;
    }
    if empty::is_clear(query) {
        return Some(parsed("array_remove(make_array(''), '')"));
    }
    listed(query).map(|query| Expr::Subquery(Box::new(query)))
}

/// Rewrites `x IN (SELECT ...)` to `x = ANY ((SELECT array_agg(...)))`, which is allowed everywhere.
fn in_list(inner: &mut Expr, subquery: &Query, negated: bool) -> Option<Expr> {
    let list = Expr::Subquery(Box::new(listed(subquery)?));
    let is_in = call("array_has", vec![Expr::Nested(Box::new(list)), take(inner)]);
    Some(if negated { Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(is_in) } } else { is_in })
}

/// Returns a query of one column as a query of one list.
pub(super) fn listed(query: &Query) -> Option<Query> {
    let mut outer = parsed_query("SELECT array_agg(x) FROM (SELECT NULL) AS listed (x)");
    let ast::SetExpr::Select(select) = &mut *outer.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else { return None };
    **subquery = query.clone();
    Some(outer)
}

/// Whether a query reads nothing but functions, so that its result is the same for every outer row.
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
