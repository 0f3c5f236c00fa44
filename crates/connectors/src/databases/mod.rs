//! Clients of MySQL, MariaDB and PostgreSQL: tables with rows of sensors, and rows that are read (`reading`).
//!
//! A table has the columns of GSN: `pk`, `timed` in milliseconds since 1970, and the fields. A row that is written again replaces itself.
//! `sql` makes the texts of statements, `mysql` and `postgresql` run them.

mod client;
mod connection;
mod error;
pub(crate) mod limits;
mod mysql;
mod pool;
mod pools;
mod postgresql;
mod reading;
mod sql;
mod storage;
mod table;
mod value;

pub(crate) use client::Database;
pub(crate) use error::DatabaseError;
pub(crate) use pools::Pools;
pub(crate) use reading::{Position, ReadRow, RowReader, TimeUnit};
pub(crate) use storage::{DatabaseExporter, manage};
pub(crate) use table::Table;
