//! Whole tables: SQL, databases, retention and deletion.

mod databases;
mod deletion;
mod namespace;
mod retention;
pub mod sql;
pub mod sql_deletion;
pub mod time_series;
mod whole_tables;

pub use whole_tables::ParquetImport;
