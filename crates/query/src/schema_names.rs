//! The names above a table's: `tacho.public."table"`.

/// The catalog of a session that names none. PostgreSQL calls it the database.
pub(crate) const CATALOG: &str = "tacho";
/// The schema of all tables of the store.
pub(crate) const SCHEMA: &str = "public";
