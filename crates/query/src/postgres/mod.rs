//! What PostgreSQL's clients ask besides our tables: `pg_catalog`, `information_schema`, their functions, and SQL as
//! drivers write it about them.
//!
//! A statement goes through the usual parser with its limits and through the usual refusals. Only if it names something
//! of the catalog it is rewritten then ([`rewrite`]) into what the planner understands; all others stay as they are.
//! Everything listed is made for one query, from the tables that its user may see. Nothing of it is kept.

mod arrays;
mod casts;
mod columns;
mod empty;
mod forms;
mod functions;
mod headings;
mod listing;
mod lookup;
mod membership;
mod names;
mod objects;
mod output_names;
mod relations;
mod rewrite;
mod truth;
mod types;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use crate::catalog::{Names, SCHEMA};
pub(crate) use arrays::{
    compares_with_array, function as array_comparison, functions as array_functions, name_comparisons,
    parameter_places, read as read_array, settle as settle_arrays,
};
use columns::INFORMATION_SCHEMA_NAME;
pub(crate) use columns::PG_CATALOG_NAME;
pub(crate) use forms::normalize_forms;
pub(crate) use functions::{find as function, is_of_catalog};
pub(crate) use headings::{folded, headings};
pub(crate) use membership::settle_memberships;
pub(crate) use objects::{Object, number};
pub(crate) use output_names::{name_columns, shown as shown_columns};
pub(crate) use rewrite::rewrite;
pub(crate) use truth::planner as truth_planner;

/// What `version()` says. Clients choose their queries by the number.
const VERSION: &str = concat!("PostgreSQL 16.6 (Tachograph ", env!("CARGO_PKG_VERSION"), ")");

/// Settings that clients ask for in queries. What a session has changed is known to the door only.
const SETTINGS: [(&str, &str); 18] = [
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "on"),
    ("integer_datetimes", "on"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "255"),
    ("max_index_keys", "32"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", "16.6"),
    ("server_version_num", "160006"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
    ("transaction_isolation", "repeatable read"),
];

/// Who owns everything that is listed: the server.
const OWNER: &str = "tacho";
const OWNER_OID: i64 = 10;
const DATABASE_OID: i64 = 5;

/// The schemas and their numbers.
const SCHEMAS: [(&str, i64); 3] = [(PG_CATALOG_NAME, 11), (INFORMATION_SCHEMA_NAME, 13_183), (SCHEMA, 2_200)];

fn schema_oid(name: &str) -> i64 {
    SCHEMAS.iter().find(|(schema, _)| *schema == name).map_or(0, |(_, oid)| *oid)
}

fn user_oid(name: &str) -> i64 {
    objects::wish(name)
}

/// A table of a system schema, as the user of the query may see it.
pub(crate) fn table(names: &Names, schema: &str, table: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    match schema {
        PG_CATALOG_NAME => {
            columns::in_pg_catalog(table).map(|table| relations::pg_catalog(names, table)).transpose()
        }
        INFORMATION_SCHEMA_NAME => columns::in_information_schema(table)
            .map(|table| relations::information_schema(names, table))
            .transpose(),
        _ => Ok(None),
    }
}
