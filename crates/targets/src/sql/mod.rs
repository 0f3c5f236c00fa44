//! SQL databases: sysbench's OLTP workloads on MySQL, MariaDB and PostgreSQL.
//!
//! `driver.rs` runs the scenarios. Phases of kind `load` fill or drop the tables: `action.rs` has their key, `loading.rs`
//! carries them out with `fill.rs`, and `contents.rs` describes the tables afterwards.
//!
//! `blocking.rs` is the client of the load, over the connections of [`clients::sql`]. `oltp.rs` has the transactions,
//! `session.rs` carries them out, `statement.rs` writes their statements, `tables.rs` names the tables, `random.rs` draws
//! the numbers. `tally.rs` counts statements, and `counters.rs` compares them with the counters of the server; `source.rs`
//! samples these.

mod action;
mod blocking;
mod contents;
mod counters;
mod driver;
mod fill;
mod loading;
mod oltp;
mod random;
mod session;
mod source;
mod statement;
mod tables;
mod tally;

pub use blocking::Sql;
pub use contents::Contents;
pub use counters::{ServerCounters, check_statements, ratio};
pub(crate) use driver::KIND;
pub use fill::LoadProgress;
pub use oltp::{OltpScript, Protocol, TablePer, Transaction};
pub use session::Session;
pub use tables::Tables;
pub use tally::{StatementCounts, Statements};
