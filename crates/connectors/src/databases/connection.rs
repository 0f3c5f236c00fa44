//! A connection of a pool.

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::limits::CONNECT_TIMEOUT;

/// The client of a kind of database.
pub(super) enum Client {
    /// MySQL or MariaDB.
    MySql(mysql_async::Conn),
    PostgreSql(Box<deadpool_postgres::Client>),
}

/// A connection of a pool. It goes back to the pool when it is dropped, unless its last statement has no answer: the next statement
/// would wait for the late answer, or take it as its own.
pub(super) struct Connection {
    /// Present until the connection is dropped.
    client: Option<Client>,
    awaits_answer: bool,
}

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        Self { client: Some(client), awaits_answer: false }
    }

    /// The client, and a flag to set as long as a statement has no answer.
    pub(super) fn parts(&mut self) -> (&mut Client, &mut bool) {
        let client = self.client.as_mut().expect("BUG: only drop takes the client");
        (client, &mut self.awaits_answer)
    }

    /// Closes the connection, and does not give it back to the pool.
    pub(super) fn close(mut self) {
        self.awaits_answer = true;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.awaits_answer {
            return;
        }
        match self.client.take() {
            Some(Client::MySql(connection)) => disconnect(connection),
            Some(Client::PostgreSql(client)) => drop(deadpool_postgres::Client::take(*client)),
            None => {}
        }
    }
}

fn disconnect(connection: mysql_async::Conn) {
    // Without a runtime the server ends, and its sockets with it.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move { timeout(CONNECT_TIMEOUT, connection.disconnect()).await });
    }
}
