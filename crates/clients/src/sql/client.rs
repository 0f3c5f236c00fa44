//! One connection to a database, for every protocol.

use std::time::Duration;

use super::address::{Address, Dialect};
use super::link::SqlError;
use super::mysql::Mysql;
use super::postgres::Postgres;
use super::value::{Effect, Rows, Statement, Type, Value};
use crate::cancel::CancelHandle;

/// MySQL's error code for too many prepared statements.
const TOO_MANY_STATEMENTS: &str = "1461";
const FEWER_STATEMENTS: &str = "raise it (SET GLOBAL max_prepared_stmt_count = ...), or take fewer tables or connections: each \
     connection prepares up to 9 statements on every table; protocol = \"text\" prepares none";

/// A connection.
#[derive(Debug)]
pub struct Client(Connection);

#[derive(Debug)]
enum Connection {
    Mysql(Box<Mysql>),
    Postgres(Box<Postgres>),
}

impl Client {
    /// Connects and logs in. No answer may take longer than `silence`.
    pub fn connect(address: &Address, silence: Duration) -> Result<Self, SqlError> {
        let connected = match address.dialect {
            Dialect::Mysql => Mysql::connect(address, silence).map(|c| Connection::Mysql(Box::new(c))),
            Dialect::Postgres => {
                Postgres::connect(address, silence).map(|c| Connection::Postgres(Box::new(c)))
            }
        };
        connected.map(Self).map_err(|error| explain(error, address))
    }

    /// Cancels the waits of this connection.
    pub fn cancel_handle(&self) -> CancelHandle {
        match &self.0 {
            Connection::Mysql(client) => client.cancel_handle(),
            Connection::Postgres(client) => client.cancel_handle(),
        }
    }

    /// Bytes sent and received so far.
    pub fn bytes(&self) -> (u64, u64) {
        match &self.0 {
            Connection::Mysql(client) => client.bytes(),
            Connection::Postgres(client) => client.bytes(),
        }
    }

    /// Runs a statement given as text. Rows are counted, not kept.
    pub fn run(&mut self, sql: &[u8]) -> Result<Effect, SqlError> {
        match &mut self.0 {
            Connection::Mysql(client) => client.run(sql),
            Connection::Postgres(client) => client.run(sql),
        }
    }

    /// Runs a query and returns its rows.
    pub fn rows(&mut self, sql: &str) -> Result<Rows, SqlError> {
        match &mut self.0 {
            Connection::Mysql(client) => client.rows(sql),
            Connection::Postgres(client) => client.rows(sql),
        }
    }

    /// Prepares a statement; `None` if the server cannot prepare this kind.
    pub fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Option<Statement>, SqlError> {
        match &mut self.0 {
            Connection::Mysql(client) => client.prepare(sql).map_err(|error| match error {
                SqlError::Refused { code, message } if code == TOO_MANY_STATEMENTS => {
                    SqlError::Refused { code, message: format!("{message}; {FEWER_STATEMENTS}") }
                }
                other => other,
            }),
            Connection::Postgres(client) => client.prepare(sql, types).map(Some),
        }
    }

    /// Runs a prepared statement. Rows are counted, not kept.
    pub fn execute(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Effect, SqlError> {
        match &mut self.0 {
            Connection::Mysql(client) => client.execute(statement, values),
            Connection::Postgres(client) => client.execute(statement, values),
        }
    }

    /// Ends the connection in order.
    pub fn quit(&mut self) {
        match &mut self.0 {
            Connection::Mysql(client) => client.quit(),
            Connection::Postgres(client) => client.quit(),
        }
    }
}

/// Adds a remedy to common refusals.
fn explain(error: SqlError, address: &Address) -> SqlError {
    let SqlError::Refused { code, message } = error else { return error };
    let advice = match code.as_str() {
        "1045" | "1698" | "28P01" | "28000" => {
            format!(
                "check user and password in the target URL ({}); the user must be allowed from this host",
                address.without_password()
            )
        }
        "1049" | "3D000" => format!("create it: CREATE DATABASE {}", address.database),
        "1044" => format!("grant it: GRANT ALL ON {}.* TO '{}'@'%'", address.database, address.user),
        "1040" | "53300" => "use fewer connections or raise max_connections of the server".to_owned(),
        _ => return SqlError::Refused { code, message },
    };
    SqlError::Refused { code, message: format!("{message}; {advice}") }
}
