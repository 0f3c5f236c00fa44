//! SQL databases: sysbench's OLTP workloads on MySQL, MariaDB and PostgreSQL.
//!
//! `driver.rs` runs the scenarios. Phases of kind `load` fill or drop the tables: `action.rs` has their key, `loading.rs`
//! carries them out with `load.rs`, and `contents.rs` describes the tables afterwards.
//!
//! `blocking.rs` is the client of the load. `client.rs` is one connection, over `mysql/` or `postgres.rs` with the socket
//! in `link.rs`, the server's address in `address.rs`, and values in `value.rs`. `oltp.rs` has the transactions,
//! `session.rs` carries them out, `statement.rs` writes their statements, `tables.rs` names the tables, `random.rs` draws
//! the numbers. `tally.rs` counts statements, and `counters.rs` compares them with the counters of the server.

mod action;
mod address;
mod blocking;
mod client;
mod contents;
mod counters;
mod driver;
mod link;
mod load;
mod loading;
mod mysql;
mod oltp;
mod postgres;
mod random;
mod session;
mod statement;
mod tables;
mod tally;
mod value;

pub use address::{Address, Dialect};
pub use blocking::Sql;
pub(crate) use client::Client;
pub use contents::Contents;
pub use counters::{ServerCounters, check_statements, ratio};
pub(crate) use driver::KIND;
pub use link::SqlError;
pub use load::LoadProgress;
pub use oltp::{Kind, Protocol, TablePer, Transaction};
pub use session::Session;
pub use tables::Tables;
pub use tally::{StatementCounts, Statements};
