//! Connections to MySQL, MariaDB and PostgreSQL.
//!
//! `client.rs` is one connection, over `mysql/` or `postgres.rs` with the socket in `link.rs`, the server's address in
//! `address.rs`, and values in `value.rs`. `control.rs` asks a server some questions.

mod address;
mod client;
mod control;
mod link;
mod mysql;
mod postgres;
mod value;

pub use address::{Address, Dialect};
pub use client::Client;
pub use control::SqlClient;
pub use link::SqlError;
pub use value::{Effect, Rows, Statement, Type, Value};
