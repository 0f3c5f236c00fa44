//! Replaces types and operators of PostgreSQL that DataFusion does not have.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, DataType, Expr, Value, ValueWithSpan};

use crate::parsed::{call, cast, last_part, take};

/// Returns the operator of `OPERATOR(pg_catalog.~)`.
pub(super) fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

fn custom_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".into()),
        DataType::Custom(name, arguments) if arguments.is_empty() => Some(last_part(name)),
        _ => None,
    }
}

/// Returns a call in place of a cast to a type such as `regclass`: it turns the number of an object into its name, and a name into
/// a number.
pub(super) fn object_cast(inner: &mut Expr, data_type: &DataType) -> Option<Expr> {
    let name = custom_name(data_type)?;
    let function = match name.as_str() {
        "regclass" => "pg_regclass",
        "regtype" => "pg_regtype",
        "regnamespace" => "pg_regnamespace",
        "regrole" => "pg_regrole",
        // Functions are identified by their names only.
        "regproc" | "regprocedure" => {
            let mut inner = take(inner);
            if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(name), .. }) = &mut inner {
                *name = name.trim_start_matches("pg_catalog.").to_owned();
            }
            return Some(inner);
        }
        _ => return None,
    };
    let argument = match take(inner) {
        // A parameter has no type yet. It is taken for a name.
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            cast(Expr::Value(value), DataType::Text)
        }
        other => other,
    };
    Some(call(function, vec![argument]))
}

/// Returns the type that `pg_catalog.int4` and similar names stand for.
pub(super) fn type_of_catalog(data_type: &DataType) -> Option<DataType> {
    if let DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, size)) = data_type {
        let element = type_of_catalog(element)?;
        return Some(DataType::Array(ast::ArrayElemTypeDef::SquareBracket(Box::new(element), *size)));
    }
    Some(match custom_name(data_type)?.as_str() {
        "text" | "name" | "varchar" | "bpchar" | "char" | "json" | "jsonb" => DataType::Text,
        "sql_identifier" | "character_data" | "yes_or_no" => DataType::Text,
        "cardinal_number" => DataType::Int(None),
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Int(None),
        "int8" | "oid" | "xid" | "cid" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        "timestamptz" => DataType::Timestamp(None, ast::TimezoneInfo::Tz),
        _ => return None,
    })
}
