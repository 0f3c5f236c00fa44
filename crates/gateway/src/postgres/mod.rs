//! The PostgreSQL door: SQL for psql, drivers and BI tools.
//!
//! Protocol 3.0 without TLS, simple and extended, text and binary values, cursors, cancelling. Statements only read. A
//! slow client makes its own query stand still: one batch of rows and one buffer of bytes are all that waits for it.
//!
//! What it does not do: COPY, replication, notifications, function calls, SCRAM.

mod arrays;
mod cancel;
mod error;
mod frontend;
pub mod limits;
mod login;
mod numeric;
mod portal;
mod rows;
mod server;
mod session;
mod settings;
mod statement;
mod unread;
mod value_text;
mod values;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use hub::Hub;
use model::limits::Portion;

use crate::budget::Budget;
use crate::http::lane::Lane;
use cancel::Cancels;
pub use server::serve;

/// What an operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whether the user `public` may read what devices report, without a password.
    pub public_read: bool,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections at once from one address.
    pub connections_per_address_max: usize,
    /// A session from which nothing came for so long is closed; `None` keeps it.
    pub idle_timeout: Option<Duration>,
    /// What of the bounds in bytes that are fixed the machine's memory allows.
    pub memory: Portion,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            public_read: false,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: limits::CONNECTIONS_MAX,
            idle_timeout: None,
            memory: Portion::ALL,
        }
    }
}

/// What all connections share.
#[derive(Debug)]
struct Door {
    hub: Arc<Hub>,
    options: PostgresOptions,
    logins: Lane,
    cancels: Arc<Cancels>,
    /// What prepared statements and bound values hold.
    statements: Arc<Budget>,
}

impl Door {
    fn new(hub: Arc<Hub>, options: PostgresOptions) -> Self {
        let logins = Lane::new("logins", limits::LOGINS_AT_ONCE, limits::LOGINS_WAITING_MAX);
        let statements = Budget::new(limits::STATEMENT_BUDGET.on(options.memory));
        Self { hub, options, logins, cancels: Arc::default(), statements }
    }

    fn refused(&self, label: &'static str) {
        self.hub.metrics().refused(hub::Door::Postgres, label);
    }
}
