//! Parts of parsed statements that rewrites put in place of others.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value,
};

/// A call of a function by its name.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(named(name), args.into_iter().map(unnamed).collect()))
}

/// The same with arguments as the parser has them.
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

/// Takes an expression out of its place, where NULL is left.
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
