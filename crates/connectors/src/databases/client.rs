//! A database of either kind.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use clients::outgoing::AllowedTargets;
use tokio::time::timeout;
use virtual_sensors::{DatabaseAddress, DatabaseOptions, OutputRow};

use super::connection::{Client, Connection};
use super::error::DatabaseError;
use super::limits::{CONNECT_TIMEOUT, ROWS_PER_STATEMENT_MAX, STATEMENT_TIMEOUT, VALUES_PER_STATEMENT_MAX};
use super::pool::{CheckedPool, Pool};
use super::table::{RowKey, Table};
use super::{mysql, postgresql, sql};

/// A database with its pool of connections. It connects when a statement needs it, and again when the database comes back.
#[derive(Debug)]
pub(crate) struct Database {
    address: DatabaseAddress,
    pool: CheckedPool,
}

impl Database {
    /// A client of a database. It does not connect yet.
    pub(crate) fn new(options: &DatabaseOptions, targets: Arc<AllowedTargets>) -> Self {
        Self { address: options.address.clone(), pool: CheckedPool::new(options, targets) }
    }

    /// Creates a table if the database does not have it. Checks the columns of an existing table.
    ///
    /// # Errors
    /// The database refuses or does not answer, or the table has another structure.
    pub(crate) async fn ensure_table(&self, table: &Table) -> Result<(), DatabaseError> {
        let kind = self.address.kind;
        let mut connection = self.connect().await?;
        let act = format!("create the table {}", table.name);
        self.execute(&mut connection, &act, &sql::create_table(kind, table)).await?;
        let act = format!("read the columns of {}", table.name);
        let found = self.texts(&mut connection, &act, sql::column_names(kind), &table.name).await?;
        let missing = sql::missing(table, &found);
        if !missing.is_empty() {
            let cause =
                format!("the table lacks the columns {}; add them, or rename the table", missing.join(", "));
            return Err(DatabaseError::new(&self.address, format!("use the table {}", table.name), cause));
        }
        let unique = self.texts(&mut connection, &act, sql::unique_columns(kind), &table.name).await?;
        let key = table.key.name();
        if !unique.iter().any(|column| column == key) {
            let cause = format!(
                "the table has no unique index over {key} alone, so rows that come again would be in it twice; create one"
            );
            return Err(DatabaseError::new(&self.address, format!("use the table {}", table.name), cause));
        }
        Ok(())
    }

    /// Writes rows. Those that are there are replaced.
    ///
    /// # Errors
    /// The database refuses or does not answer. Some of the rows may be written.
    pub(crate) async fn write_rows(&self, table: &Table, rows: &[OutputRow]) -> Result<(), DatabaseError> {
        let act = format!("insert into {}", table.name);
        let mut connection = self.connect().await?;
        for chunk in newest_of_each_key(table, rows).chunks(rows_at_once(table)) {
            self.insert(&mut connection, &act, table, chunk).await?;
        }
        Ok(())
    }

    /// Deletes the rows of a table that are older than the newest ones.
    ///
    /// # Errors
    /// The database refuses or does not answer.
    pub(crate) async fn keep_newest(&self, table: &Table, count: usize) -> Result<(), DatabaseError> {
        self.delete(table, &sql::keep_newest(self.address.kind, table, count)).await
    }

    /// Deletes the rows of a table before a time in milliseconds.
    ///
    /// # Errors
    /// The database refuses or does not answer.
    pub(crate) async fn delete_before(&self, table: &Table, timed: i64) -> Result<(), DatabaseError> {
        self.delete(table, &sql::delete_before(self.address.kind, table, timed)).await
    }

    async fn delete(&self, table: &Table, statement: &str) -> Result<(), DatabaseError> {
        let mut connection = self.connect().await?;
        self.execute(&mut connection, &format!("delete from {}", table.name), statement).await
    }

    /// Where it is.
    pub(super) fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    pub(super) async fn connect(&self) -> Result<Connection, DatabaseError> {
        let failed = |cause: String| DatabaseError::new(&self.address, "connect", cause);
        let pool = match timeout(CONNECT_TIMEOUT, self.pool.get()).await {
            Ok(pool) => pool.map_err(failed)?,
            Err(_) => return Err(failed(no_answer(CONNECT_TIMEOUT))),
        };
        let client = match &pool {
            Pool::MySql(pool) => match timeout(CONNECT_TIMEOUT, pool.get_conn()).await {
                Ok(client) => client.map(Client::MySql).map_err(|error| failed(error.to_string())),
                Err(_) => Err(failed(no_answer(CONNECT_TIMEOUT))),
            },
            Pool::PostgreSql(pool) => match timeout(CONNECT_TIMEOUT, pool.get()).await {
                Ok(client) => {
                    client.map(Box::new).map(Client::PostgreSql).map_err(|error| failed(pool_cause(&error)))
                }
                Err(_) => Err(failed(no_answer(CONNECT_TIMEOUT))),
            },
        };
        client.map(Connection::new)
    }

    pub(super) async fn execute(
        &self,
        connection: &mut Connection,
        act: &str,
        statement: &str,
    ) -> Result<(), DatabaseError> {
        let (client, awaits_answer) = connection.parts();
        match client {
            Client::MySql(client) => {
                self.in_time(awaits_answer, act, mysql::execute(client, statement)).await
            }
            Client::PostgreSql(client) => {
                self.in_time(awaits_answer, act, postgresql::execute(client, statement)).await
            }
        }
    }

    async fn texts(
        &self,
        connection: &mut Connection,
        act: &str,
        statement: &str,
        parameter: &str,
    ) -> Result<Vec<String>, DatabaseError> {
        let (client, awaits_answer) = connection.parts();
        match client {
            Client::MySql(client) => {
                self.in_time(awaits_answer, act, mysql::texts(client, statement, parameter)).await
            }
            Client::PostgreSql(client) => {
                self.in_time(awaits_answer, act, postgresql::texts(client, statement, parameter)).await
            }
        }
    }

    async fn insert(
        &self,
        connection: &mut Connection,
        act: &str,
        table: &Table,
        rows: &[&OutputRow],
    ) -> Result<(), DatabaseError> {
        let statement = sql::insert(self.address.kind, table, rows.len());
        let (client, awaits_answer) = connection.parts();
        match client {
            Client::MySql(client) => {
                self.in_time(awaits_answer, act, mysql::insert(client, &statement, table, rows)).await
            }
            Client::PostgreSql(client) => {
                self.in_time(awaits_answer, act, postgresql::insert(client, &statement, table, rows)).await
            }
        }
    }

    /// The answer to a statement, if it comes in time. The flag stays set if it does not, or if the caller ends before.
    pub(super) async fn in_time<T, E: Cause>(
        &self,
        awaits_answer: &mut bool,
        act: &str,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, DatabaseError> {
        *awaits_answer = true;
        let Ok(answer) = timeout(STATEMENT_TIMEOUT, answer).await else {
            return Err(DatabaseError::new(&self.address, act, no_answer(STATEMENT_TIMEOUT)));
        };
        *awaits_answer = false;
        answer.map_err(|error| {
            DatabaseError::new(&self.address, act, error.cause()).of_data(error.is_of_data())
        })
    }
}

/// The statement of a client about a failure.
pub(super) trait Cause {
    fn cause(&self) -> String;
    fn is_of_data(&self) -> bool;
}

impl Cause for mysql_async::Error {
    fn cause(&self) -> String {
        self.to_string()
    }

    fn is_of_data(&self) -> bool {
        mysql::is_of_data(self)
    }
}

impl Cause for tokio_postgres::Error {
    fn cause(&self) -> String {
        postgresql::cause(self)
    }

    fn is_of_data(&self) -> bool {
        postgresql::is_of_data(self)
    }
}

fn pool_cause(error: &deadpool_postgres::PoolError) -> String {
    match error {
        deadpool_postgres::PoolError::Backend(error) => postgresql::cause(error),
        error => error.to_string(),
    }
}

fn no_answer(waited: Duration) -> String {
    format!("no answer within {} s", waited.as_secs())
}

/// Rows that fit into one statement.
fn rows_at_once(table: &Table) -> usize {
    (VALUES_PER_STATEMENT_MAX / (table.columns.len() + 2)).clamp(1, ROWS_PER_STATEMENT_MAX)
}

/// The rows without those whose key a later row has: a statement writes a key once.
fn newest_of_each_key<'a>(table: &Table, rows: &'a [OutputRow]) -> Vec<&'a OutputRow> {
    let key = |row: &OutputRow| match table.key {
        RowKey::Timed => row.us.div_euclid(1_000),
        RowKey::Pk => row.us,
    };
    let last: HashMap<i64, usize> = rows.iter().enumerate().map(|(at, row)| (key(row), at)).collect();
    rows.iter().enumerate().filter(|(at, row)| last.get(&key(row)) == Some(at)).map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_writes_a_key_once() {
        let mut table = Table { name: "t".to_owned(), key: RowKey::Timed, columns: Vec::new() };
        let rows = [1_000, 1_001, 2_000].map(|us| OutputRow { us, values: Vec::new() });
        let times =
            |table: &Table| newest_of_each_key(table, &rows).iter().map(|row| row.us).collect::<Vec<_>>();
        assert_eq!(times(&table), [1_001, 2_000]);
        table.key = RowKey::Pk;
        assert_eq!(times(&table), [1_000, 1_001, 2_000]);
        assert_eq!(rows_at_once(&table), ROWS_PER_STATEMENT_MAX);
    }
}
