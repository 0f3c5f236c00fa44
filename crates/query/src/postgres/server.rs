//! Properties of the server: version, settings, owner, schemas and their numbers.

use super::columns::{INFORMATION_SCHEMA_NAME, PG_CATALOG_NAME};
use super::objects::wish;
use crate::schema_names::SCHEMA;

/// The result of `version()`. Clients choose their queries by the number.
pub(super) const VERSION: &str = concat!("PostgreSQL 16.6 (Tachograph ", env!("CARGO_PKG_VERSION"), ")");

/// Settings that clients query. Only the door knows the settings that a session has changed.
pub(super) const SETTINGS: [(&str, &str); 18] = [
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

/// The owner of all listed objects: the server.
pub(super) const OWNER: &str = "tacho";
pub(super) const OWNER_OID: i64 = 10;
pub(super) const DATABASE_OID: i64 = 5;

/// The schemas and their numbers.
pub(super) const SCHEMAS: [(&str, i64); 3] =
    [(PG_CATALOG_NAME, 11), (INFORMATION_SCHEMA_NAME, 13_183), (SCHEMA, 2_200)];

pub(super) fn schema_oid(name: &str) -> i64 {
    SCHEMAS.iter().find(|(schema, _)| *schema == name).map_or(0, |(_, oid)| *oid)
}

pub(super) fn user_oid(name: &str) -> i64 {
    wish(name)
}
