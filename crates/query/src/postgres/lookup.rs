//! Finds the name of an object by its number, and the number by its name.

use datafusion::common::Result;

use super::names::{parse_ident, quote_ident};
use super::server::{OWNER, OWNER_OID, SCHEMAS, schema_oid, user_oid};
use super::{relations, types};
use crate::QueryError;
use crate::tables::OpenTables;

pub(super) fn type_name(oid: i64) -> String {
    types::sql_name(oid).unwrap_or_else(|| if oid == 0 { "-".into() } else { "???".into() })
}

pub(super) fn known_type(name: &str) -> Result<i64> {
    let unknown = || QueryError::Invalid { message: format!("type {name:?} does not exist") };
    Ok(types::number(name).ok_or_else(unknown)?)
}

/// Returns the number of a table. The name may be quoted, and the schema may be left out.
pub(super) fn class_number(name: &str, tables: &OpenTables) -> Result<Option<i64>> {
    if let Ok(oid) = name.trim().parse() {
        return Ok(Some(oid));
    }
    let parts = parse_ident(name)?;
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        _ => return Ok(None),
    };
    let found = relations::relations(tables)?.into_iter().find(|relation| {
        relation.object.name == *name && schema.is_none_or(|schema| schema == relation.schema)
    });
    Ok(found.map(|relation| relation.object.oid))
}

pub(super) fn known_class(name: &str, tables: &OpenTables) -> Result<i64> {
    let unknown = || QueryError::UnknownTable { table: name.to_owned(), nearest: None };
    Ok(class_number(name, tables)?.ok_or_else(unknown)?)
}

pub(super) fn class_name(oid: i64, tables: &OpenTables) -> Result<String> {
    let found = relations::relations(tables)?.into_iter().find(|relation| relation.object.oid == oid);
    Ok(match found {
        Some(relation) if relation.is_ours() => quote_ident(&relation.object.name),
        Some(relation) => format!("{}.{}", relation.schema, relation.object.name),
        None if oid == 0 => "-".into(),
        None => oid.to_string(),
    })
}

pub(super) fn schema_number(name: &str) -> Option<i64> {
    SCHEMAS.iter().find(|(schema, _)| *schema == name).map(|(_, oid)| *oid)
}

pub(super) fn schema_name(oid: i64) -> String {
    let known = SCHEMAS.iter().find(|(name, _)| schema_oid(name) == oid);
    known.map_or_else(|| oid.to_string(), |(name, _)| (*name).to_owned())
}

pub(super) fn role_name(oid: i64, tables: &OpenTables) -> String {
    let user = tables.user();
    match oid {
        OWNER_OID => OWNER.into(),
        oid if oid == user_oid(user) => user.into(),
        oid => format!("unknown (OID={oid})"),
    }
}

pub(super) fn role_number(name: &str, tables: &OpenTables) -> Option<i64> {
    [(OWNER, OWNER_OID), (tables.user(), user_oid(tables.user()))]
        .into_iter()
        .find(|(role, _)| *role == name)
        .map(|(_, oid)| oid)
}
