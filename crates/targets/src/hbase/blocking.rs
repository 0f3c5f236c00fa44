//! The client of the load: one thread per connection number, as in PerformanceEvaluation.

use std::sync::Arc;
use std::time::Instant;

use clients::CancelHandle;
use load::dataset::Random;
use load::protocol::{Blocking, Done, DueTime, Failure, OperationChoice};

use super::cluster::Cluster;
use super::operation::{Operation, TestKind};
use super::pe::{PeFigures, figures};
use super::read::RowCounts;
use super::rows::Dataset;
use super::session::{Session, Work};
use super::tally::{Tally, WrittenRows};

/// The workload of a phase.
#[derive(Debug)]
pub(super) struct Workload {
    cluster: Arc<Cluster>,
    data: Dataset,
    operations: Vec<Operation>,
    choice: OperationChoice,
    seed: u64,
    /// The rows of each connection; `None` for no end, or for its share of the rows where operations are sequential.
    rows: Option<u64>,
    /// Whether an operation takes one row after the other.
    is_sequential: bool,
    tally: Tally,
    written: WrittenRows,
}

impl Workload {
    /// Takes the operations by class number; `choice` assigns them to connections, and `classes` are those of the phase.
    pub(super) fn new(
        cluster: Arc<Cluster>,
        data: Dataset,
        operations: Vec<Operation>,
        (choice, classes): (OperationChoice, &[u16]),
        seed: u64,
        rows: Option<u64>,
    ) -> Self {
        let is_sequential = classes
            .iter()
            .filter_map(|class| operations.get(usize::from(*class)))
            .any(|operation| operation.kind.is_sequential());
        let written = WrittenRows::new(data.rows);
        Self {
            cluster,
            data,
            operations,
            choice,
            seed,
            rows,
            is_sequential,
            tally: Tally::default(),
            written,
        }
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The rows that were written.
    pub(super) fn written(self) -> WrittenRows {
        self.written
    }

    fn work(&self) -> Work<'_> {
        Work { cluster: &self.cluster, data: &self.data, tally: &self.tally, written: &self.written }
    }

    /// The first row of a connection, and its number of rows: as in PerformanceEvaluation client n begins at n times the
    /// rows of a client.
    fn share(&self, number: u32) -> (u64, Option<u64>) {
        if let Some(rows) = self.rows {
            return (u64::from(number) * rows, Some(rows));
        }
        let at =
            |number: u32| self.data.rows * u64::from(number) / u64::from(self.choice.connections().max(1));
        let first = at(number);
        (first, self.is_sequential.then(|| at(number + 1) - first))
    }

    fn operation(&self, session: &mut Session, operation: &Operation) -> Result<(u64, RowCounts), Failure> {
        let work = self.work();
        let of_found = |found: RowCounts| (found.hits + found.misses, found);
        match operation.kind {
            TestKind::RandomWrite | TestKind::SequentialWrite => {
                session.write(&work, operation).map(|rows| (rows, RowCounts::default()))
            }
            TestKind::RandomRead | TestKind::SequentialRead => session.get(&work, operation).map(of_found),
            // PerformanceEvaluation counts a scan as one row.
            TestKind::ScanRange | TestKind::RandomSeekScan => {
                session.scan(&work, operation).map(|found| (1, found))
            }
        }
    }
}

/// What PerformanceEvaluation would print for these clients.
pub(super) fn pe_figures(sessions: &[Session]) -> Option<PeFigures> {
    figures(sessions.iter().map(|session| &session.pe))
}

impl Blocking for Workload {
    type Session = Session;

    fn open(&self, number: u32) -> Result<Session, String> {
        Session::open(&self.work(), number, self.seed, self.share(number))
    }

    fn reopen(&self, session: &mut Session) -> Result<(), String> {
        session.reopen(&self.work())
    }

    fn cancel_handle(&self, session: &Session) -> Option<CancelHandle> {
        Some(session.cancel_handle())
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        if session.left == Some(0) {
            return None;
        }
        self.choice.next(session.number, &mut session.choice)
    }

    fn run(&self, session: &mut Session, class: u16, _: DueTime) -> Result<Done, Failure> {
        let operation = &self.operations[usize::from(class)];
        let before = session.bytes();
        let began = Instant::now();
        let (rows, found) = self.operation(session, operation)?;
        session.pe.add((began, Instant::now()), rows, operation.is_buffered);
        let after = session.bytes();
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Done {
            hits: count(found.hits),
            misses: count(found.misses),
            bytes_out: after.0.saturating_sub(before.0),
            bytes_in: after.1.saturating_sub(before.1),
        })
    }

    fn check(&self, session: &mut Session) -> Result<(), String> {
        session.check(&self.data)
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        session.random = super::java_random::JavaRandom::of_client(seed, session.number);
        session.choice = Random::keyed(seed, 0, session.number.into());
    }

    fn close(&self, _: &mut Session) {
        // HBase has no message for the end of a connection: the socket closes with the session.
    }
}
