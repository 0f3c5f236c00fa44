//! Types and operators that need not exist here, as those that do.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, DataType, Expr, Value, ValueWithSpan};

use super::rewrite::last;
use crate::parsed::{call, cast, take};

/// `OPERATOR(pg_catalog.~)`
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
        DataType::Custom(name, arguments) if arguments.is_empty() => Some(last(name)),
        _ => None,
    }
}

/// A cast to a type of names and numbers: the number of a name, the name of a number.
pub(super) fn object_cast(inner: &mut Expr, data_type: &DataType) -> Option<Expr> {
    let name = custom_name(data_type)?;
    let function = match name.as_str() {
        "regclass" => "pg_regclass",
        "regtype" => "pg_regtype",
        "regnamespace" => "pg_regnamespace",
        "regrole" => "pg_regrole",
        // Functions are known by their names only.
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
        // Neither a name nor a number yet: a name.
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            cast(Expr::Value(value), DataType::Text)
        }
        other => other,
    };
    Some(call(function, vec![argument]))
}

/// The type that `pg_catalog.int4` and the like stand for.
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
