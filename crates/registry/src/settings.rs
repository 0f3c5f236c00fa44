//! Settings of the installation in the registry: values with a key.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::error::RegistryError;

/// The setting with the key of session tokens.
pub(super) const SESSION_SECRET: &str = "session_secret";

/// The setting with the last receipt time.
pub(super) const LAST_RECEIPT: &str = "last_receipt_us";

/// Reads a setting.
pub(super) fn setting<T: rusqlite::types::FromSql>(
    connection: &Connection,
    path: &Path,
    key: &str,
) -> Result<Option<T>, RegistryError> {
    let sql = "SELECT value FROM setting WHERE key = ?1";
    let value = connection.query_row(sql, [key], |row| row.get(0)).optional();
    value.map_err(RegistryError::sqlite("read a setting", path))
}

/// Writes a setting.
pub(super) fn keep_setting(
    transaction: &Transaction<'_>,
    key: &str,
    value: impl rusqlite::ToSql,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) \
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    transaction.execute(sql, (key, value))?;
    Ok(())
}
