//! The rows of `pg_catalog` and `information_schema`: the tables that the user may see, and the constant rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::columns::{self, System};
use super::keywords;
use super::listing::{Cell, Listing};
use super::objects::{Object, number};
use super::server::{DATABASE_OID, OWNER, OWNER_OID, SCHEMAS, SETTINGS, schema_oid, user_oid};
use super::types::{TYPES, of_column};
use crate::schema_names::SCHEMA;
use crate::tables::OpenTables;

/// The number of the access method of all tables.
const HEAP_OID: i64 = 2;
/// The only tablespace.
const TABLESPACE_OID: i64 = 1_663;
/// The tables of `pg_catalog` without a well-known number are numbered from here on.
const PG_CATALOG_FIRST_OID: i64 = 12_000;
/// The numbers of the tables of `information_schema`, which is not in the search path.
pub(super) const INFORMATION_SCHEMA_OIDS: Range<i64> = 13_200..13_300;
/// `pg_encoding` of UTF-8.
pub(super) const UTF8: i64 = 6;

/// The numbers of system tables that clients contain.
const WELL_KNOWN: [(&str, i64); 12] = [
    ("pg_class", 1_259),
    ("pg_attribute", 1_249),
    ("pg_type", 1_247),
    ("pg_proc", 1_255),
    ("pg_namespace", 2_615),
    ("pg_database", 1_262),
    ("pg_description", 2_609),
    ("pg_attrdef", 2_604),
    ("pg_constraint", 2_606),
    ("pg_index", 2_610),
    ("pg_am", 2_601),
    ("pg_extension", 3_079),
];

/// A table of any schema.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) schema: &'static str,
    pub(super) object: Object,
}

impl Relation {
    pub(super) fn is_ours(&self) -> bool {
        self.schema == SCHEMA
    }

    /// The letter of its kind: `r` for tables, `v` for views.
    fn kind(&self) -> &'static str {
        let is_view = self.schema == columns::INFORMATION_SCHEMA_NAME
            || [
                "pg_roles",
                "pg_user",
                "pg_settings",
                "pg_tables",
                "pg_views",
                "pg_matviews",
                "pg_indexes",
                "pg_rules",
            ]
            .contains(&self.object.name.as_str());
        if is_view { "v" } else { "r" }
    }

    fn schema_of(&self, tables: &OpenTables) -> Result<Option<Arc<Schema>>> {
        let name = self.object.name.as_str();
        let system =
            |system: Option<&System>| system.map(|system| Arc::new(Listing::new(system.columns).schema()));
        Ok(match self.schema {
            SCHEMA => tables.find(name)?.map(|table| table.schema),
            columns::PG_CATALOG_NAME => system(columns::in_pg_catalog(name)),
            _ => system(columns::in_information_schema(name)),
        })
    }
}

/// The tables of the store that the user may see, with their numbers, sorted by name.
pub(super) fn objects(tables: &OpenTables) -> Result<Vec<Object>> {
    Ok(number(tables.status()?, |name| tables.is_visible(name)))
}

/// Returns all tables that the user may see, of all schemas.
pub(super) fn relations(tables: &OpenTables) -> Result<Vec<Relation>> {
    let ours = objects(tables)?.into_iter().map(|object| Relation { schema: SCHEMA, object });
    Ok(ours.chain(system_relations()).collect())
}

/// Returns the tables of the system schemas.
pub(super) fn system_relations() -> impl Iterator<Item = Relation> {
    let of = |schema, first: i64, tables: &'static [System]| {
        tables.iter().zip(first..).map(move |(table, oid)| {
            let known = WELL_KNOWN.iter().find(|(name, _)| *name == table.name).map(|(_, oid)| *oid);
            let object = Object { oid: known.unwrap_or(oid), name: table.name.into(), bytes: 0, rows: 0 };
            Relation { schema, object }
        })
    };
    of(columns::PG_CATALOG_NAME, PG_CATALOG_FIRST_OID, &columns::PG_CATALOG).chain(of(
        columns::INFORMATION_SCHEMA_NAME,
        INFORMATION_SCHEMA_OIDS.start,
        &columns::INFORMATION_SCHEMA,
    ))
}

/// Returns the rows of a table of `pg_catalog`, as the user may see them.
pub(super) fn pg_catalog(tables: &OpenTables, table: &System) -> Result<Arc<dyn TableProvider>> {
    let mut rows = Listing::new(table.columns);
    match table.name {
        "pg_namespace" => namespaces(&mut rows),
        "pg_class" => classes(tables, &mut rows)?,
        "pg_attribute" => attributes(tables, &mut rows)?,
        "pg_type" => types(&mut rows),
        "pg_database" => rows.row([
            ("oid", DATABASE_OID.into()),
            ("datname", tables.catalog().into()),
            ("datdba", OWNER_OID.into()),
            ("encoding", UTF8.into()),
            ("datlocprovider", "c".into()),
            ("datallowconn", true.into()),
            ("datconnlimit", (-1).into()),
            ("dattablespace", TABLESPACE_OID.into()),
            ("datcollate", "C".into()),
            ("datctype", "C".into()),
        ]),
        "pg_roles" => roles(tables, |oid, name, is_user| {
            rows.row([
                ("oid", oid.into()),
                ("rolname", name.into()),
                ("rolinherit", true.into()),
                ("rolcanlogin", is_user.into()),
                ("rolconnlimit", (-1).into()),
            ]);
        }),
        "pg_user" => roles(tables, |oid, name, is_user| {
            if is_user {
                rows.row([("usesysid", oid.into()), ("usename", name.into())]);
            }
        }),
        "pg_am" => rows.row([
            ("oid", HEAP_OID.into()),
            ("amname", "heap".into()),
            ("amhandler", "heap_tableam_handler".into()),
            ("amtype", "t".into()),
        ]),
        "pg_tablespace" => rows.row([
            ("oid", TABLESPACE_OID.into()),
            ("spcname", "pg_default".into()),
            ("spcowner", OWNER_OID.into()),
        ]),
        "pg_settings" => SETTINGS.iter().for_each(|(name, setting)| {
            rows.row([
                ("name", (*name).into()),
                ("setting", (*setting).into()),
                ("boot_val", (*setting).into()),
                ("reset_val", (*setting).into()),
                ("source", "default".into()),
                ("category", "Preset Options".into()),
                ("context", "internal".into()),
                ("vartype", "string".into()),
            ]);
        }),
        "pg_tables" => {
            relations(tables)?.iter().filter(|relation| relation.kind() == "r").for_each(|relation| {
                rows.row([
                    ("schemaname", relation.schema.into()),
                    ("tablename", relation.object.name.as_str().into()),
                    ("tableowner", OWNER.into()),
                ]);
            })
        }
        "pg_stat_activity" => rows.row([
            ("datid", DATABASE_OID.into()),
            ("datname", tables.catalog().into()),
            ("pid", process_id().into()),
            ("usesysid", user_oid(tables.user()).into()),
            ("usename", tables.user().into()),
            ("state", "active".into()),
            ("backend_type", "client backend".into()),
        ]),
        "pg_stat_user_tables" => {
            relations(tables)?
                .iter()
                .filter(|relation| relation.kind() == "r" && relation.schema == SCHEMA)
                .for_each(|relation| {
                    rows.row([
                        ("relid", relation.object.oid.into()),
                        ("schemaname", relation.schema.into()),
                        ("relname", relation.object.name.as_str().into()),
                        ("n_live_tup", relation.object.rows.into()),
                    ]);
                });
        }
        "pg_keywords" => keywords::list(&mut rows),
        _ => {}
    }
    rows.table()
}

/// The number that stands for every session: they are threads of one process.
pub(super) fn process_id() -> i64 {
    std::process::id().into()
}

fn namespaces(rows: &mut Listing) {
    for (name, oid) in SCHEMAS {
        rows.row([("oid", oid.into()), ("nspname", name.into()), ("nspowner", OWNER_OID.into())]);
    }
}

fn roles(tables: &OpenTables, mut add: impl FnMut(i64, &str, bool)) {
    add(OWNER_OID, OWNER, false);
    let user = tables.user();
    add(user_oid(user), user, true);
}

fn classes(tables: &OpenTables, rows: &mut Listing) -> Result<()> {
    for relation in relations(tables)? {
        let columns = relation.schema_of(tables)?.map_or(0, |schema| schema.fields().len());
        let is_table = relation.kind() == "r";
        rows.row([
            ("oid", relation.object.oid.into()),
            ("relname", relation.object.name.as_str().into()),
            ("relnamespace", schema_oid(relation.schema).into()),
            ("relowner", OWNER_OID.into()),
            ("relam", if is_table { HEAP_OID } else { 0 }.into()),
            ("reltuples", relation.object.rows.into()),
            ("relpersistence", "p".into()),
            ("relkind", relation.kind().into()),
            ("relnatts", (columns as i64).into()),
            ("relispopulated", true.into()),
            ("relreplident", "n".into()),
        ]);
    }
    Ok(())
}

fn attributes(tables: &OpenTables, rows: &mut Listing) -> Result<()> {
    for relation in relations(tables)? {
        let Some(schema) = relation.schema_of(tables)? else { continue };
        for (field, number) in schema.fields().iter().zip(1_i64..) {
            let column = of_column(field.data_type());
            rows.row([
                ("attrelid", relation.object.oid.into()),
                ("attname", field.name().as_str().into()),
                ("atttypid", column.oid.into()),
                ("attlen", i64::from(column.length).into()),
                ("attnum", number.into()),
                ("attcacheoff", (-1).into()),
                ("atttypmod", (-1).into()),
                ("attbyval", (column.length > 0).into()),
                ("attalign", alignment(column.length).into()),
                ("attstorage", storage(column.length).into()),
                ("attnotnull", (!field.is_nullable()).into()),
                ("attislocal", true.into()),
                ("attstattarget", (-1).into()),
            ]);
        }
    }
    Ok(())
}

fn alignment(length: i32) -> &'static str {
    match length {
        1 => "c",
        2 => "s",
        8 | 16 => "d",
        _ => "i",
    }
}

fn storage(length: i32) -> &'static str {
    if length < 0 { "x" } else { "p" }
}

fn types(rows: &mut Listing) {
    let schema = schema_oid(columns::PG_CATALOG_NAME);
    for known in TYPES {
        rows.row([
            ("oid", known.oid.into()),
            ("typname", known.name.into()),
            ("typnamespace", schema.into()),
            ("typowner", OWNER_OID.into()),
            ("typlen", i64::from(known.length).into()),
            ("typbyval", (1..=8).contains(&known.length).into()),
            ("typtype", if known.category == "P" || known.category == "X" { "p" } else { "b" }.into()),
            ("typcategory", known.category.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typarray", known.array_oid.into()),
            ("typinput", format!("{}in", known.name).into()),
            ("typoutput", format!("{}out", known.name).into()),
            ("typreceive", format!("{}recv", known.name).into()),
            ("typsend", format!("{}send", known.name).into()),
            ("typalign", alignment(known.length).into()),
            ("typstorage", storage(known.length).into()),
            ("typtypmod", (-1).into()),
        ]);
        if known.array_oid != 0 {
            rows.row([
                ("oid", known.array_oid.into()),
                ("typname", format!("_{}", known.name).into()),
                ("typnamespace", schema.into()),
                ("typowner", OWNER_OID.into()),
                ("typlen", (-1).into()),
                ("typtype", "b".into()),
                ("typcategory", "A".into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typelem", known.oid.into()),
                ("typsubscript", "array_subscript_handler".into()),
                ("typinput", "array_in".into()),
                ("typoutput", "array_out".into()),
                ("typreceive", "array_recv".into()),
                ("typsend", "array_send".into()),
                ("typalign", alignment(known.length).into()),
                ("typstorage", "x".into()),
                ("typtypmod", (-1).into()),
            ]);
        }
    }
}

/// Returns the rows of a table of `information_schema`.
pub(super) fn information_schema(tables: &OpenTables, table: &System) -> Result<Arc<dyn TableProvider>> {
    let mut rows = Listing::new(table.columns);
    match table.name {
        "tables" => relations(tables)?.iter().for_each(|relation| {
            rows.row([
                ("table_catalog", tables.catalog().into()),
                ("table_schema", relation.schema.into()),
                ("table_name", relation.object.name.as_str().into()),
                ("table_type", if relation.kind() == "r" { "BASE TABLE" } else { "VIEW" }.into()),
                ("is_insertable_into", "NO".into()),
                ("is_typed", "NO".into()),
            ]);
        }),
        "columns" => described_columns(tables, &mut rows)?,
        "schemata" => SCHEMAS.iter().for_each(|(name, _)| {
            rows.row([
                ("catalog_name", tables.catalog().into()),
                ("schema_name", (*name).into()),
                ("schema_owner", OWNER.into()),
            ]);
        }),
        "information_schema_catalog_name" => rows.row([("catalog_name", tables.catalog().into())]),
        "enabled_roles" => rows.row([("role_name", tables.user().into())]),
        "applicable_roles" => rows.row([
            ("grantee", tables.user().into()),
            ("role_name", tables.user().into()),
            ("is_grantable", "NO".into()),
        ]),
        "table_privileges" => relations(tables)?.iter().for_each(|relation| {
            rows.row([
                ("grantor", OWNER.into()),
                ("grantee", tables.user().into()),
                ("table_catalog", tables.catalog().into()),
                ("table_schema", relation.schema.into()),
                ("table_name", relation.object.name.as_str().into()),
                ("privilege_type", "SELECT".into()),
                ("is_grantable", "NO".into()),
                ("with_hierarchy", "NO".into()),
            ]);
        }),
        _ => {}
    }
    rows.table()
}

fn described_columns(tables: &OpenTables, rows: &mut Listing) -> Result<()> {
    let yes_no = |yes: bool| Cell::from(if yes { "YES" } else { "NO" });
    for relation in relations(tables)? {
        let Some(schema) = relation.schema_of(tables)? else { continue };
        for (field, number) in schema.fields().iter().zip(1_i64..) {
            let column = of_column(field.data_type());
            // The bits of a number. PostgreSQL counts them without the exponent.
            let (precision, scale) = match column.name {
                "float8" => (Some(53), None),
                "int8" => (Some(64), Some(0)),
                "int4" => (Some(32), Some(0)),
                _ => (None, None),
            };
            let second_digits = (column.category == "D").then_some(6_i64);
            rows.row([
                ("table_catalog", tables.catalog().into()),
                ("table_schema", relation.schema.into()),
                ("table_name", relation.object.name.as_str().into()),
                ("column_name", field.name().as_str().into()),
                ("ordinal_position", number.into()),
                ("is_nullable", yes_no(field.is_nullable())),
                ("data_type", column.sql_name.into()),
                ("numeric_precision", precision.into()),
                ("numeric_precision_radix", precision.map(|_| 2_i64).into()),
                ("numeric_scale", scale.into()),
                ("datetime_precision", second_digits.into()),
                ("udt_catalog", tables.catalog().into()),
                ("udt_schema", columns::PG_CATALOG_NAME.into()),
                ("udt_name", column.name.into()),
                ("dtd_identifier", number.to_string().into()),
                ("is_self_referencing", yes_no(false)),
                ("is_identity", yes_no(false)),
                ("is_generated", "NEVER".into()),
                ("is_updatable", yes_no(false)),
            ]);
        }
    }
    Ok(())
}
