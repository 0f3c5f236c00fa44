//! Reads over HTTP: the response times of a dashboard's queries, at rest and while points are written. The driver
//! checks that every answer contains the right number of values.

use std::sync::atomic::{AtomicU64, Ordering};

use clients::CancelHandle;
use load::Result;
use load::dataset::Random;
use load::protocol::OperationChoice;
use load::protocol::{Blocking, Done, DueTime, Failure};

use super::fill::{StoredData, WriteBatch};
use super::queries::Query;
use super::{fill, queries};
use crate::devices::Client;

use super::fill::{DataSize, WRITE};

/// A filled server, and the queries.
pub(crate) struct Dashboard {
    client: Client,
    size: DataSize,
    stored: StoredData,
    queries: Vec<Query>,
    /// The number of write requests so far.
    written: AtomicU64,
}

impl Dashboard {
    /// Creates the devices and writes their history.
    pub(crate) fn fill(client: Client, size: DataSize) -> Result<Self> {
        let stored = fill::fill(size, &client)?;
        let queries = queries::all(size, &stored);
        Ok(Self { client, size, stored, queries, written: AtomicU64::new(0) })
    }

    /// The number of rows stored before the first query.
    pub(crate) fn rows(&self) -> u64 {
        self.stored.rows
    }
}

/// One load: connections that query or write.
pub(crate) struct Reads<'a> {
    pub(crate) dashboard: &'a Dashboard,
    /// The names of the classes: queries, and [`WRITE`].
    pub(crate) classes: &'a [String],
    /// The class of each group of connections.
    pub(crate) choice: OperationChoice,
}

/// One connection.
pub(crate) struct Session {
    number: u32,
    client: Client,
    random: Random,
    /// The class and the body of an answer that is not checked yet.
    answer: Option<(u16, String)>,
    /// The next batch to write. It is prepared in advance, because its preparation is not the server's time.
    more: Option<WriteBatch>,
}

impl Reads<'_> {
    fn name(&self, class: u16) -> &str {
        &self.classes[usize::from(class)]
    }

    fn query(&self, class: u16) -> &Query {
        let name = self.name(class);
        let found = self.dashboard.queries.iter().find(|query| query.name == name);
        found.expect("BUG: the names of classes are checked")
    }

    fn more(&self) -> WriteBatch {
        let Dashboard { size, stored, written, .. } = self.dashboard;
        WriteBatch::new(*size, stored, written.fetch_add(1, Ordering::Relaxed))
    }
}

impl Blocking for Reads<'_> {
    type Session = Session;

    fn open(&self, number: u32) -> std::result::Result<Session, String> {
        let mut random = Random::new(0);
        let writes = self.choice.next(number, &mut random).is_some_and(|class| self.name(class) == WRITE);
        let more = writes.then(|| self.more());
        Ok(Session { number, client: self.dashboard.client.clone(), random, answer: None, more })
    }

    /// The HTTP client reconnects by itself.
    fn reopen(&self, _: &mut Session) -> std::result::Result<(), String> {
        Ok(())
    }

    fn cancel_handle(&self, _: &Session) -> Option<CancelHandle> {
        None
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        self.choice.next(session.number, &mut session.random)
    }

    fn run(&self, session: &mut Session, class: u16, _: DueTime) -> std::result::Result<Done, Failure> {
        let refused = |error: load::Error| Failure::Refused(error.to_string());
        if let Some(more) = &session.more {
            let bytes_out = more.write(&session.client).map_err(refused)?;
            return Ok(Done { bytes_out, ..Done::default() });
        }
        let answer = self.query(class).ask(&session.client).map_err(refused)?;
        let bytes_in = answer.len() as u64;
        session.answer = Some((class, answer));
        Ok(Done { bytes_in, ..Done::default() })
    }

    fn check(&self, session: &mut Session) -> std::result::Result<(), String> {
        if session.more.is_some() {
            session.more = Some(self.more());
        }
        let Some((class, answer)) = session.answer.take() else { return Ok(()) };
        self.query(class).check(&answer).map_err(|error| error.to_string())
    }

    fn close(&self, _: &mut Session) {}
}
