//! Builds pieces of parsed statements, which rewrites put in place of others.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// A call of a function by its name.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(named(name), args.into_iter().map(unnamed).collect()))
}

/// A call with arguments as the parser represents them.
pub(crate) fn function(name: ObjectName, args: Vec<FunctionArg>) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(crate) fn unnamed(argument: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
}

/// The name of a function or table.
pub(crate) fn named(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::new(name)])
}

/// Takes an expression and leaves NULL in its place.
pub(crate) fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, literal(Value::Null))
}

pub(crate) fn literal(value: Value) -> Expr {
    Expr::Value(value.into())
}

pub(crate) fn number(number: u64) -> Expr {
    literal(Value::Number(number.to_string(), false))
}

pub(crate) fn text_of(text: String) -> Expr {
    literal(Value::SingleQuotedString(text))
}

pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// Returns the last part of a name, in lower case unless it is quoted.
pub(crate) fn last_part(name: &ObjectName) -> String {
    name.0.last().and_then(ObjectNamePart::as_ident).map_or_else(String::new, |part| match part.quote_style {
        Some(_) => part.value.clone(),
        None => part.value.to_ascii_lowercase(),
    })
}

/// Parses an expression that this crate contains.
pub(crate) fn parsed(text: &'static str) -> Expr {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
    parsed.unwrap_or_else(|_| literal(Value::Null))
}

pub(crate) fn parsed_query(text: &'static str) -> Query {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    parsed.map_or_else(|_| unreachable!("{text}"), |query| *query)
}
