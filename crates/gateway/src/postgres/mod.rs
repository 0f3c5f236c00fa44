//! The PostgreSQL door: SQL for psql, drivers and BI tools.
//!
//! It speaks protocol 3.0, with TLS if the server has a certificate: simple and extended queries, text and binary values, cursors, cancelling. Statements
//! only read. A slow client stops only its own query: at most one batch of rows and one buffer of bytes wait for it.
//!
//! Not supported: COPY into tables, replication, notifications, function calls, SCRAM.

mod arrays;
mod cancel;
mod copy_rows;
mod copy_statement;
mod error;
pub mod limits;
mod login;
mod numeric;
mod options;
mod portal;
mod rows;
mod server;
mod session;
mod settings;
mod state;
mod statement;
mod statement_error;
mod value_error;
mod value_text;
mod values;
mod wire;
mod words;

pub use options::PostgresOptions;
pub use server::serve;
