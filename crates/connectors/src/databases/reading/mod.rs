//! Reads the rows of a table or a query in the order of their times, page by page.
//!
//! Every page is read in a transaction that cannot write. `sql` makes the texts of statements, `mysql` and `postgresql` run them.

mod columns;
mod mysql;
mod postgresql;
mod rows;
mod sql;

use std::sync::Arc;

use virtual_sensors::JdbcWrapper;

pub(crate) use self::columns::TimeUnit;
use self::columns::{Columns, FoundColumn};
pub(crate) use self::rows::{Page, Position, ReadRow};
use super::client::Database;
use super::connection::{Client, Connection};
use super::error::DatabaseError;

/// What a client does when it reads a page, in words for an error.
const READ: &str = "read rows";

/// A table or a query that is read.
pub(crate) struct RowReader {
    database: Arc<Database>,
    relation: String,
    columns: Columns,
    text_bytes_max: usize,
    rows_at_once: usize,
}

impl RowReader {
    /// Connects, and finds the columns. Of a text that is longer than `text_bytes_max` characters, one character more is read.
    ///
    /// # Errors
    /// The database refuses or does not answer, or its columns are not those of the wrapper.
    pub(crate) async fn open(
        database: Arc<Database>,
        wrapper: &JdbcWrapper,
        text_bytes_max: usize,
    ) -> Result<Self, DatabaseError> {
        let relation = sql::relation(database.address().kind, &wrapper.relation);
        let found = database.find_columns(&sql::all_columns(&relation)).await?;
        let columns = Columns::choose(found, wrapper)
            .map_err(|cause| DatabaseError::new(database.address(), "use the columns", cause))?;
        let rows_at_once = columns.rows_at_once(text_bytes_max);
        Ok(Self { database, relation, columns, text_bytes_max, rows_at_once })
    }

    /// The meaning of the numbers of times.
    pub(crate) fn unit(&self) -> TimeUnit {
        self.columns.unit
    }

    /// The names of the values of a row, in lower case.
    pub(crate) fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// The rows after a position, with times up to `until`, in the order of their times and keys.
    ///
    /// # Errors
    /// The database refuses or does not answer, or rows of one time cannot be told apart.
    pub(crate) async fn page(&self, after: Option<Position>, until: i64) -> Result<Page, DatabaseError> {
        let kind = self.database.address().kind;
        let has_key = self.columns.has_key();
        // With a key one row more distinguishes rows of the same time and key at the end of a page.
        let cut = (self.text_bytes_max, self.rows_at_once + usize::from(has_key));
        let statement = sql::page(kind, &self.relation, &self.columns, cut, (after, until));
        let rows = self.database.read_rows(&statement, &self.columns).await?;
        Page::new(rows, self.rows_at_once, has_key)
            .map_err(|cause| DatabaseError::new(self.database.address(), READ, cause))
    }
}

impl Database {
    async fn find_columns(&self, statement: &str) -> Result<Vec<FoundColumn>, DatabaseError> {
        let mut connection = self.connect().await?;
        let act = "read the columns";
        let (client, awaits_answer) = connection.parts();
        match client {
            Client::MySql(client) => {
                self.in_time(awaits_answer, act, mysql::columns(client, statement)).await
            }
            Client::PostgreSql(client) => {
                self.in_time(awaits_answer, act, postgresql::columns(client, statement)).await
            }
        }
    }

    /// Reads rows in a transaction that cannot write. After a failure the connection is closed, which ends its transaction.
    async fn read_rows(&self, statement: &str, columns: &Columns) -> Result<Vec<ReadRow>, DatabaseError> {
        let mut connection = self.connect().await?;
        let read = self.read_rows_on(&mut connection, statement, columns).await;
        if read.is_err() {
            connection.close();
        }
        read
    }

    async fn read_rows_on(
        &self,
        connection: &mut Connection,
        statement: &str,
        columns: &Columns,
    ) -> Result<Vec<ReadRow>, DatabaseError> {
        for begin in sql::begin(self.address().kind) {
            self.execute(connection, READ, begin).await?;
        }
        let (client, awaits_answer) = connection.parts();
        let rows = match client {
            Client::MySql(client) => {
                self.in_time(awaits_answer, READ, mysql::rows(client, statement, columns)).await?
            }
            Client::PostgreSql(client) => {
                self.in_time(awaits_answer, READ, postgresql::rows(client, statement, columns)).await?
            }
        };
        self.execute(connection, READ, "COMMIT").await?;
        rows.map_err(|cause| DatabaseError::new(self.address(), READ, cause))
    }
}
