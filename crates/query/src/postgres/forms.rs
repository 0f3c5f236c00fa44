//! Rewrites forms of SQL that DataFusion does not know to equivalent ones that it knows.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CaseWhen, DataType, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, LimitClause, Query, SetExpr, Subscript, TableAlias,
    TableAliasColumnDef, TableFactor, VisitorMut,
};

use super::arrays;
use crate::parsed::{self, call, cast, last_part, named, number, parsed_query, take, text_of};
use crate::walk::walk_mut;

/// Window functions whose results are unsigned in DataFusion, so that differences of them would wrap.
const COUNTS: [&str; 4] = ["dense_rank", "ntile", "rank", "row_number"];

/// Functions of arrays, and aggregates, with unsigned results.
const ARRAY_COUNTS: [&str; 3] = ["array_position", "cardinality", "regr_count"];
/// Functions that replace all occurrences where DataFusion's function of the same name replaces the first, and functions with other
/// names.
const RENAMED: [(&str, &str); 4] = [
    ("array_remove", "array_remove_all"),
    ("array_replace", "array_replace_all"),
    ("every", "bool_and"),
    ("variance", "var_samp"),
];

/// An index behind the end of each array.
const ARRAY_END: u64 = i32::MAX as u64;

/// Functions that write a value of any type as a constant.
const QUOTES: [&str; 2] = ["quote_literal", "quote_nullable"];

/// Rewrites these forms.
pub(crate) fn normalize_forms(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut Forms);
        }
        Statement::Explain(explain) => normalize_forms(&mut explain.statement),
        _ => {}
    }
}

struct Forms;

impl VisitorMut for Forms {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(limited) =
            query.fetch.as_ref().and_then(|fetch| fetched(query.limit_clause.as_ref(), fetch))
        {
            query.limit_clause = Some(limited);
            query.fetch = None;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some(numbered) = numbered(factor) {
            *factor = numbered;
        }
        match factor {
            TableFactor::Table { args: Some(_), alias: Some(alias), .. } => name_column(alias),
            TableFactor::UNNEST { alias: Some(alias), array_exprs, .. } if array_exprs.len() == 1 => {
                name_column(alias);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) => {
                let name = last_part(&call.name);
                if let Some((_, other)) = RENAMED.iter().find(|(known, _)| *known == name) {
                    call.name = named(other);
                } else if ARRAY_COUNTS.contains(&name.as_str())
                    || (call.over.is_some() && COUNTS.contains(&name.as_str()))
                {
                    *expr = cast(take(expr), DataType::BigInt(None));
                } else if QUOTES.contains(&name.as_str()) {
                    of_text(call);
                    if name == "quote_nullable" {
                        call.name = named("quote_literal");
                        *expr = parsed::call("coalesce", vec![take(expr), text_of("NULL".into())]);
                    }
                } else if name == "array_positions" {
                    let bigint = Box::new(DataType::BigInt(None));
                    *expr = cast(take(expr), DataType::Array(ArrayElemTypeDef::SquareBracket(bigint, None)));
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::PGOverlap, right } => {
                *expr = of_two(arrays::OVERLAPS, left, right);
            }
            Expr::BinaryOp { left, op: BinaryOperator::AtArrow, right } => {
                *expr = of_two(arrays::CONTAINS, left, right);
            }
            Expr::BinaryOp { left, op: BinaryOperator::ArrowAt, right } => {
                *expr = of_two(arrays::CONTAINS, right, left);
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    match access {
                        AccessExpr::Subscript(Subscript::Index { index }) => at_least_one(index),
                        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
                            *lower_bound = Some(bound(lower_bound.take(), 1, 1));
                            *upper_bound = Some(bound(upper_bound.take(), 0, ARRAY_END));
                        }
                        AccessExpr::Dot(_) => {}
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Quotes a value of any type as its text.
fn of_text(call: &mut Function) {
    if let FunctionArguments::List(list) = &mut call.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_mut_slice()
    {
        *argument = cast(take(argument), DataType::Text);
    }
}

fn of_two(name: &str, left: &mut Expr, right: &mut Expr) -> Expr {
    call(name, vec![take(left), take(right)])
}

/// Rewrites a bound of a slice. Elements count from 1; DataFusion counts smaller bounds from the end.
fn bound(given: Option<Expr>, least: u64, usual: u64) -> Expr {
    let Some(given) = given else { return number(usual) };
    let is_small = Expr::BinaryOp {
        left: Box::new(given.clone()),
        op: BinaryOperator::Lt,
        right: Box::new(number(least)),
    };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: is_small, result: number(least) }],
        else_result: Some(Box::new(given)),
    }
}

/// Rewrites `unnest(list) WITH ORDINALITY` to a query that numbers the rows.
fn numbered(factor: &mut TableFactor) -> Option<TableFactor> {
    let TableFactor::UNNEST { alias, with_ordinality: with_ordinality @ true, .. } = factor else {
        return None;
    };
    *with_ordinality = false;
    let outer = alias.take().unwrap_or_else(|| named_table(Ident::new("unnest"), Vec::new()));
    let column = outer.columns.first().map_or_else(|| outer.name.clone(), |column| column.name.clone());
    let column = TableAliasColumnDef { name: column, data_type: None };
    *alias = Some(named_table(Ident::new("numbered"), vec![column]));
    let mut query = parsed_query("SELECT *, CAST(row_number() OVER () AS BIGINT) AS ordinality FROM nothing");
    if let SetExpr::Select(select) = &mut *query.body {
        select.from.first_mut()?.relation = factor.clone();
    }
    Some(TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(outer), sample: None })
}

fn named_table(name: Ident, columns: Vec<TableAliasColumnDef>) -> TableAlias {
    TableAlias { explicit: true, name, columns, at: None }
}

/// Rewrites an index of an array. Elements count from 1; DataFusion counts smaller indexes from the end.
fn at_least_one(index: &mut Expr) {
    if matches!(index, Expr::Value(_)) {
        return;
    }
    let positive = call("greatest", vec![take(index), number(0)]);
    *index = call("nullif", vec![positive, number(0)]);
}

/// Rewrites `FETCH FIRST n ROWS ONLY` to `LIMIT n`. Without a number it is one row.
fn fetched(limit_clause: Option<&LimitClause>, fetch: &Fetch) -> Option<LimitClause> {
    let offset = match limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by }) if limit_by.is_empty() => {
            offset.clone()
        }
        Some(_) => return None,
    };
    let limit = Some(fetch.quantity.clone().unwrap_or_else(|| number(1)));
    let is_plain = !fetch.percent && !fetch.with_ties;
    is_plain.then_some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() })
}

/// Names the only column of a function in FROM after its alias.
fn name_column(alias: &mut TableAlias) {
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}
