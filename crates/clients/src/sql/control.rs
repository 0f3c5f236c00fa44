//! A connection that asks a database some questions.

use std::time::Duration;

use super::address::Address;
use super::client::Client;
use super::link::SqlError;

/// The longest wait for an answer of a database.
const SILENCE: Duration = Duration::from_secs(30);

/// A connection to MySQL, MariaDB or PostgreSQL.
#[derive(Debug)]
pub struct SqlClient(Client);

impl SqlClient {
    /// Connects and logs in.
    pub fn connect(address: &Address) -> Result<Self, SqlError> {
        Client::connect(address, SILENCE).map(Self)
    }

    /// Runs a query and returns its rows as text; `None` is NULL.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        self.0.rows(sql)
    }
}

impl Drop for SqlClient {
    fn drop(&mut self) {
        self.0.quit();
    }
}
