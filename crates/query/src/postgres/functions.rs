//! The functions of the catalog.
//!
//! They are computed value by value: catalogs are small, and the code stays simple.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::listing::{Cell, ColumnType};
use super::lookup::{
    class_name, class_number, known_class, known_type, role_name, role_number, schema_name, schema_number,
    type_name,
};
use super::names::{like_pattern, parse_ident, pretty, quote_ident, quote_literal};
use super::server::{SETTINGS, VERSION};
use super::{relations, types};
use crate::QueryError;
use crate::schema_names::SCHEMA;
use crate::tables::OpenTables;

type Compute = fn(&[Cell], &OpenTables) -> Result<Cell>;

/// The type of a function's result.
#[derive(Debug, Clone, Copy)]
enum Gives {
    Always(ColumnType),
    /// The name for a number, the number for a name.
    NameOrNumber,
}

/// A function: its name, the type of its result, and its computation.
struct Known(&'static str, Gives, Compute);

const fn text(name: &'static str, compute: Compute) -> Known {
    Known(name, Gives::Always(ColumnType::Text), compute)
}

const fn truth(name: &'static str, compute: Compute) -> Known {
    Known(name, Gives::Always(ColumnType::Bool), compute)
}

const fn number(name: &'static str, compute: Compute) -> Known {
    Known(name, Gives::Always(ColumnType::Oid), compute)
}

const fn texts(name: &'static str, compute: Compute) -> Known {
    Known(name, Gives::Always(ColumnType::Texts), compute)
}

/// Functions of objects that do not exist here.
const NOTHING: Compute = |_, _| Ok(Cell::Null);
const YES: Compute = |_, _| Ok(Cell::Bool(true));
const NO: Compute = |_, _| Ok(Cell::Bool(false));
const USER: Compute = |_, tables| Ok(tables.user().into());
const DATABASE: Compute = |_, tables| Ok(tables.catalog().into());

const FUNCTIONS: [Known; 79] = [
    text("version", |_, _| Ok(VERSION.into())),
    text("current_user", USER),
    text("session_user", USER),
    text("current_role", USER),
    text("user", USER),
    text("current_database", DATABASE),
    text("current_catalog", DATABASE),
    text("current_schema", |_, _| Ok(SCHEMA.into())),
    texts("current_schemas", current_schemas),
    text("current_setting", current_setting),
    text("set_config", |args, _| Ok(args.get(1).cloned().unwrap_or(Cell::Null))),
    text("format_type", |args, _| Ok(number_of(args, 0).map(type_name).into())),
    text("quote_ident", |args, _| Ok(text_of(args, 0).map(quote_ident).into())),
    text("quote_literal", |args, _| Ok(text_of(args, 0).map(quote_literal).into())),
    text("like_pattern", |args, _| {
        Ok(text_of(args, 0)
            .zip(text_of(args, 1))
            .map(|(pattern, escape)| like_pattern(pattern, escape))
            .into())
    }),
    texts("parse_ident", |args, _| {
        Ok(text_of(args, 0).map(parse_ident).transpose()?.map_or(Cell::Null, Cell::Texts))
    }),
    number("to_regclass", |args, tables| {
        Ok(text_of(args, 0).map(|name| class_number(name, tables)).transpose()?.flatten().into())
    }),
    number("to_regtype", |args, _| Ok(text_of(args, 0).and_then(types::number).into())),
    number("to_regnamespace", |args, _| Ok(text_of(args, 0).and_then(schema_number).into())),
    Known("pg_regclass", Gives::NameOrNumber, |args, tables| match args.first() {
        Some(Cell::Int(oid)) => class_name(*oid, tables).map(Cell::from),
        Some(Cell::Text(name)) => Ok(known_class(name, tables)?.into()),
        _ => Ok(Cell::Null),
    }),
    Known("pg_regtype", Gives::NameOrNumber, |args, _| {
        Ok(match args.first() {
            Some(Cell::Int(oid)) => type_name(*oid).into(),
            Some(Cell::Text(name)) => known_type(name)?.into(),
            _ => Cell::Null,
        })
    }),
    Known("pg_regnamespace", Gives::NameOrNumber, |args, _| {
        Ok(match args.first() {
            Some(Cell::Int(oid)) => schema_name(*oid).into(),
            Some(Cell::Text(name)) => schema_number(name).into(),
            _ => Cell::Null,
        })
    }),
    Known("pg_regrole", Gives::NameOrNumber, |args, tables| {
        Ok(match args.first() {
            Some(Cell::Int(oid)) => role_name(*oid, tables).into(),
            Some(Cell::Text(name)) => role_number(name, tables).into(),
            _ => Cell::Null,
        })
    }),
    text("pg_get_userbyid", |args, tables| Ok(number_of(args, 0).map(|oid| role_name(oid, tables)).into())),
    text("pg_encoding_to_char", |args, _| {
        Ok(number_of(args, 0).map(|oid| if oid == relations::UTF8 { "UTF8" } else { "" }).into())
    }),
    truth("pg_table_is_visible", |args, _| {
        Ok(number_of(args, 0).map(|oid| !relations::INFORMATION_SCHEMA_OIDS.contains(&oid)).into())
    }),
    truth("pg_type_is_visible", YES),
    truth("pg_function_is_visible", YES),
    truth("pg_opclass_is_visible", YES),
    truth("pg_operator_is_visible", YES),
    truth("pg_collation_is_visible", YES),
    truth("pg_statistics_obj_is_visible", YES),
    truth("pg_relation_is_publishable", NO),
    truth("pg_is_in_recovery", NO),
    truth("pg_is_other_temp_schema", NO),
    number("pg_backend_pid", |_, _| Ok(relations::process_id().into())),
    number("pg_my_temp_schema", |_, _| Ok(0.into())),
    text("pg_get_expr", NOTHING),
    text("pg_get_constraintdef", NOTHING),
    text("pg_get_indexdef", NOTHING),
    text("pg_get_viewdef", NOTHING),
    text("pg_get_triggerdef", NOTHING),
    text("pg_get_ruledef", NOTHING),
    text("pg_get_functiondef", NOTHING),
    text("pg_get_function_result", NOTHING),
    text("pg_get_function_arguments", NOTHING),
    text("pg_get_function_identity_arguments", NOTHING),
    text("pg_get_partkeydef", NOTHING),
    text("pg_get_statisticsobjdef_columns", NOTHING),
    text("pg_get_serial_sequence", NOTHING),
    text("pg_tablespace_location", NOTHING),
    text("obj_description", NOTHING),
    text("col_description", NOTHING),
    text("shobj_description", NOTHING),
    text("inet_server_addr", NOTHING),
    number("inet_server_port", NOTHING),
    texts("pg_options_to_table", NOTHING),
    number("generate_subscripts", NOTHING),
    number("pg_relation_size", size),
    number("pg_table_size", size),
    number("pg_total_relation_size", size),
    number("pg_indexes_size", |_, _| Ok(0.into())),
    number("pg_database_size", |_, tables| {
        Ok(relations::objects(tables)?
            .iter()
            .fold(0_i64, |sum, object| sum.saturating_add(object.bytes))
            .into())
    }),
    text("pg_size_pretty", |args, _| Ok(number_of(args, 0).map(pretty).into())),
    truth("has_table_privilege", may_read),
    truth("has_any_column_privilege", may_read),
    truth("has_column_privilege", may_read),
    truth("has_schema_privilege", may_use),
    truth("has_database_privilege", may_use),
    truth("has_function_privilege", may_use),
    truth("has_sequence_privilege", may_use),
    truth("has_language_privilege", may_use),
    truth("has_tablespace_privilege", may_use),
    truth("has_type_privilege", may_use),
    truth("has_foreign_data_wrapper_privilege", may_use),
    truth("has_server_privilege", may_use),
    truth("pg_has_role", YES),
    truth("row_security_active", NO),
    number("pg_relation_filenode", NOTHING),
];

/// Whether the catalog has a function with this name.
pub(super) fn is_known(name: &str) -> bool {
    FUNCTIONS.iter().any(|Known(known, _, _)| *known == name)
}

/// Returns the function with this name for one query: many results depend on the user.
pub(crate) fn find(name: &str, tables: &Arc<OpenTables>) -> Option<Arc<ScalarUDF>> {
    let index = FUNCTIONS.iter().position(|Known(known, _, _)| *known == name)?;
    let signature =
        Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Immutable);
    Some(Arc::new(ScalarUDF::from(CatalogFunction { index, tables: Arc::clone(tables), signature })))
}

/// Whether a function is one of the catalog: its result depends on the query.
pub(crate) fn is_of_catalog(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<CatalogFunction>().is_some()
}

#[derive(Debug)]
struct CatalogFunction {
    /// The function's index in [`FUNCTIONS`].
    index: usize,
    tables: Arc<OpenTables>,
    signature: Signature,
}

impl PartialEq for CatalogFunction {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.tables, &other.tables)
    }
}

impl Eq for CatalogFunction {}

impl Hash for CatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        FUNCTIONS[self.index].0
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(kind(FUNCTIONS[self.index].1, types.first()).data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Known(_, gives, compute) = FUNCTIONS[self.index];
        let kind = kind(gives, args.arg_fields.first().map(|field| field.data_type()));
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns: Vec<Vec<Cell>> =
            args.args.iter().map(|arg| cells(&arg.to_array(rows)?)).collect::<Result<_>>()?;
        let call = |row: usize| {
            let values: Vec<Cell> = columns.iter().map(|column| column[row].clone()).collect();
            compute(&values, &self.tables)
        };
        let found: Vec<Cell> = (0..rows).map(call).collect::<Result<_>>()?;
        let array = kind.array(&found.iter().collect::<Vec<_>>());
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

fn kind(gives: Gives, argument: Option<&DataType>) -> ColumnType {
    match gives {
        Gives::Always(kind) => kind,
        Gives::NameOrNumber if argument.is_some_and(DataType::is_numeric) => ColumnType::Text,
        Gives::NameOrNumber => ColumnType::Oid,
    }
}

fn cells(array: &ArrayRef) -> Result<Vec<Cell>> {
    let of = |data_type: &DataType| cast(array, data_type);
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().iter().map(Cell::from).collect(),
        data_type if data_type.is_numeric() => {
            of(&DataType::Int64)?.as_primitive::<Int64Type>().iter().map(Cell::from).collect()
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let list = |row: usize| -> Result<Cell> {
                if lists.is_null(row) {
                    return Ok(Cell::Null);
                }
                let texts = cast(&lists.value(row), &DataType::Utf8)?;
                Ok(Cell::Texts(
                    texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect(),
                ))
            };
            (0..lists.len()).map(list).collect::<Result<_>>()?
        }
        DataType::Null => vec![Cell::Null; array.len()],
        _ => of(&DataType::Utf8)?.as_string::<i32>().iter().map(Cell::from).collect(),
    })
}

fn number_of(args: &[Cell], index: usize) -> Option<i64> {
    match args.get(index) {
        Some(Cell::Int(value)) => Some(*value),
        Some(Cell::Text(text)) => text.trim().parse().ok(),
        _ => None,
    }
}

fn text_of(args: &[Cell], index: usize) -> Option<&str> {
    match args.get(index) {
        Some(Cell::Text(text)) => Some(text),
        _ => None,
    }
}

fn current_schemas(args: &[Cell], _: &OpenTables) -> Result<Cell> {
    let with_system = matches!(args.first(), Some(Cell::Bool(true)));
    let schemas: &[&str] = if with_system { &["pg_catalog", SCHEMA] } else { &[SCHEMA] };
    Ok(Cell::Texts(schemas.iter().map(|name| (*name).to_owned()).collect()))
}

/// Values that a session has set are not visible here.
fn current_setting(args: &[Cell], _: &OpenTables) -> Result<Cell> {
    let Some(name) = text_of(args, 0) else { return Ok(Cell::Null) };
    let known = SETTINGS.iter().find(|(setting, _)| setting.eq_ignore_ascii_case(name));
    match known {
        Some((_, value)) => Ok((*value).into()),
        None if matches!(args.get(1), Some(Cell::Bool(true))) => Ok(Cell::Null),
        None => {
            Err(QueryError::Invalid { message: format!("unrecognized configuration parameter {name:?}") }
                .into())
        }
    }
}

fn size(args: &[Cell], tables: &OpenTables) -> Result<Cell> {
    let oid = match args.first() {
        Some(Cell::Int(oid)) => *oid,
        Some(Cell::Text(name)) => known_class(name, tables)?,
        _ => return Ok(Cell::Null),
    };
    let found = relations::relations(tables)?.into_iter().find(|relation| relation.object.oid == oid);
    Ok(found.map(|relation| relation.object.bytes).into())
}

/// The last argument is the privilege. The one before it is the table, perhaps with a column between them.
fn may_read(args: &[Cell], tables: &OpenTables) -> Result<Cell> {
    let is_select = matches!(args.last(), Some(Cell::Text(privilege)) if privilege.to_ascii_lowercase().contains("select"));
    let mut tables = args.iter().rev().skip(1).map(|arg| match arg {
        Cell::Int(oid) => {
            Ok(relations::relations(tables)?.iter().any(|relation| relation.object.oid == *oid))
        }
        Cell::Text(name) => Ok(class_number(name, tables)?.is_some()),
        _ => Ok(false),
    });
    let is_there = tables.try_fold(false, |found, one: Result<bool>| {
        Ok::<_, datafusion::common::DataFusionError>(found || one?)
    })?;
    Ok((is_select && is_there).into())
}

fn may_use(args: &[Cell], _: &OpenTables) -> Result<Cell> {
    let privilege = args
        .last()
        .and_then(|arg| if let Cell::Text(text) = arg { Some(text.to_ascii_lowercase()) } else { None });
    let usual = ["usage", "connect", "execute", "select"];
    Ok(privilege.is_some_and(|text| usual.iter().any(|usual| text.contains(usual))).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let names: std::collections::HashSet<_> = FUNCTIONS.iter().map(|Known(name, _, _)| name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
    }
}
