//! The names that PostgreSQL gives to columns without a name in the statement (`FigureColname` in its `parse_target.c`).

use std::sync::Arc;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, Ident, ObjectName,
    Query, SelectItem, SetExpr, TimezoneInfo, TrimWhereField,
};

/// The name of a column for which PostgreSQL finds none.
const NAMELESS: &str = "?column?";
/// The most binary digits of a 4-byte `float`.
const FLOAT4_DIGITS_MAX: u64 = 24;

/// Returns the names of the columns of a statement's answer as PostgreSQL gives them. Empty if the statement does not determine how
/// many columns there are, as with `*`, or if it is not a query.
pub(crate) fn headings(statement: &Statement) -> Arc<[String]> {
    let Statement::Statement(statement) = statement else { return Arc::default() };
    let ast::Statement::Query(query) = &**statement else { return Arc::default() };
    of_query(query).unwrap_or_default().into()
}

fn of_query(query: &Query) -> Option<Vec<String>> {
    let names = items(&query.body)?.iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some(name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    });
    names.collect()
}

/// Returns the name of a column that has none in the statement.
pub(crate) fn name_of(expr: &Expr) -> String {
    figured(expr).map_or_else(|| NAMELESS.to_owned(), |name| name.text)
}

/// Returns the columns of the first SELECT. In a set operation all SELECTs have its names.
fn items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => items(&query.body),
        SetExpr::SetOperation { left, .. } => items(left),
        _ => None,
    }
}

struct Name {
    text: String,
    /// Whether the name is that of a column or function, and not of an expression around it.
    is_own: bool,
}

fn figured(expr: &Expr) -> Option<Name> {
    let own = |text: String| Some(Name { text, is_own: true });
    let word = |text: &str| own(text.to_owned());
    let weak = |text: String| Some(Name { text, is_own: false });
    let unless_own = |inner: Option<Name>, text: String| match inner {
        Some(name) if name.is_own => Some(name),
        _ => weak(text),
    };
    match expr {
        Expr::Identifier(name) => own(folded(name)),
        Expr::CompoundIdentifier(names) => names.last().and_then(|name| own(folded(name))),
        Expr::Function(call) => own(last(&call.name)?),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured(inner),
        Expr::CompoundFieldAccess { root, access_chain } => access_chain
            .iter()
            .rev()
            .find_map(|access| match access {
                AccessExpr::Dot(field) => Some(figured(field)),
                AccessExpr::Subscript(_) => None,
            })
            .unwrap_or_else(|| figured(root)),
        Expr::Tuple(_) => weak("row".to_owned()),
        Expr::Cast { expr: inner, data_type, .. } => unless_own(figured(inner), type_name(data_type)),
        Expr::TypedString(typed) => weak(type_name(&typed.data_type)),
        Expr::Interval(_) => weak("interval".to_owned()),
        Expr::Case { else_result, .. } => {
            unless_own(else_result.as_deref().and_then(figured), "case".to_owned())
        }
        Expr::Subquery(query) => match items(&query.body)? {
            [SelectItem::UnnamedExpr(inner)] => figured(inner),
            [SelectItem::ExprWithAlias { alias, .. }] => own(folded(alias)),
            _ => None,
        },
        Expr::Exists { negated: false, .. } => word("exists"),
        Expr::Array(_) => word("array"),
        Expr::Extract { .. } => word("extract"),
        Expr::Ceil { .. } => word("ceil"),
        Expr::Floor { .. } => word("floor"),
        Expr::Position { .. } => word("position"),
        Expr::Substring { shorthand, .. } => word(if *shorthand { "substr" } else { "substring" }),
        Expr::Overlay { .. } => word("overlay"),
        Expr::AtTimeZone { .. } => word("timezone"),
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => word("overlaps"),
        Expr::Trim { trim_where, .. } => word(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => None,
    }
}

/// Returns a name in lower case, unless it was quoted.
pub(crate) fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_ascii_lowercase() }
}

fn last(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(folded)
}

/// Returns PostgreSQL's own name of a type.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(ExactNumberInfo::Precision(digits)) if *digits <= FLOAT4_DIGITS_MAX => "float4",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Float8 => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Bool | DataType::Boolean => "bool",
        DataType::Varchar(_) | DataType::CharacterVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(..) => "time",
        DataType::Interval { .. } => "interval",
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => return type_name(element),
        DataType::Custom(name, _) => return last(name).unwrap_or_default(),
        other => return other.to_string().to_ascii_lowercase(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements and the names of their columns, as psql shows them with PostgreSQL 15.
    const NAMES: &str = include_str!("testdata/headings.txt");

    fn of(sql: &str) -> Arc<[String]> {
        headings(&crate::statement::parse(sql).unwrap())
    }

    #[test]
    fn columns_have_the_names_of_postgresql() {
        for line in NAMES.lines() {
            let (names, sql) = line.split_once(" <- ").unwrap();
            assert_eq!(of(sql).join("|"), names, "{sql}");
        }
    }

    #[test]
    fn unknown_expressions_stay_unchanged() {
        for sql in [
            "SELECT *, count(*) OVER () FROM t",
            "SELECT t.* FROM t",
            "VALUES (1)",
            "EXPLAIN SELECT 1",
            "SHOW TABLES",
        ] {
            assert!(of(sql).is_empty(), "{sql}");
        }
    }
}
