//! SQL databases: sysbench's OLTP workloads on MySQL, MariaDB and PostgreSQL, statement by statement.
//!
//! The transactions, the distributions of their random numbers and the counters are those of sysbench 1.0.20 (or 0.5).
//! The measurement is our own: response time from the intended start, open loop, full histograms.

use std::time::Duration;

use clients::CancelHandle;
use clients::sql::{Address, Client, SqlError};
use load::dataset::{Sampler, UniqueShare};
use load::protocol::{Blocking, Done, DueTime, Failure, OperationChoice};
use load::{Error, Result};

use super::{contents, fill};

use super::contents::Contents;
use super::fill::LoadProgress;
use super::oltp::{OltpScript, Transaction};
use super::session::Session;
use super::session::Work;
use super::tables::Tables;
use super::tally::{StatementCounts, Statements};

/// The workload of a phase.
#[derive(Debug)]
pub struct Sql {
    address: Address,
    tables: Tables,
    transactions: Vec<Transaction>,
    choice: OperationChoice,
    ids: Sampler,
    unique: UniqueShare,
    statements: Statements,
    seed: u64,
    silence: Duration,
}

impl Sql {
    /// Takes the transactions by class number; `choice` assigns them to connections. No answer may take longer than
    /// `silence`.
    pub fn new(
        address: Address,
        tables: Tables,
        transactions: Vec<Transaction>,
        choice: OperationChoice,
        seed: u64,
        silence: Duration,
    ) -> Result<Self> {
        tables.check().map_err(|what| Error::Options(format!("[dataset]: {what}")))?;
        for transaction in &transactions {
            transaction.check().map_err(|what| Error::Options(format!("[[operation]]: {what}")))?;
            if transaction.kind.is_random_select() && tables.tables != 1 {
                return Err(Error::Options(format!(
                    "[dataset]: tables = {}; select_random_points and select_random_ranges ask one table only",
                    tables.tables
                )));
            }
        }
        Ok(Self {
            ids: tables.distribution.over(1, tables.table_size.into()),
            address,
            tables,
            transactions,
            choice,
            unique: UniqueShare::new(seed, (0, 1)),
            statements: Statements::default(),
            seed,
            silence,
        })
    }

    /// The part of one of several processes: its index and the number of parts. No other process generates the same
    /// ids.
    pub fn of_part(mut self, part: (u32, u32)) -> Self {
        self.unique = UniqueShare::new(self.seed, part);
        self
    }

    /// The statements so far, counted as sysbench counts them.
    pub fn statements(&self) -> StatementCounts {
        self.statements.counts()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Creates and fills the tables with `connections` connections.
    pub fn load(&self, connections: u32, loaded: &LoadProgress) -> Result<()> {
        let done = if self.is_bulk() {
            fill::create_bulk(&self.address, connections)
        } else {
            fill::load(&self.address, &self.tables, self.rows(), self.seed, connections, loaded)
        };
        done.map_err(|error| self.failed("loading", &error))
    }

    /// The content of the tables after a load; `None` for workloads that create tables without rows.
    pub fn contents(&self) -> Result<Option<Contents>> {
        if self.is_bulk() {
            return Ok(None);
        }
        let contents = contents::contents(&self.address, self.tables.tables, self.rows());
        contents.map(Some).map_err(|error| self.failed("counting the rows of", &error))
    }

    /// The number of tables that a load fills.
    pub fn tables(&self) -> u32 {
        self.tables.tables
    }

    /// The number of rows that a load writes into each table.
    pub fn rows(&self) -> u32 {
        if self.is_bulk() {
            return 0;
        }
        // Ids that a client generates could collide with those of loaded rows.
        let only_inserts =
            self.transactions.iter().all(|t| t.kind == OltpScript::Insert) && !self.tables.auto_inc;
        if only_inserts { 0 } else { self.tables.table_size }
    }

    /// Drops the tables.
    pub fn clean_up(&self, connections: u32) -> Result<()> {
        let tables = if self.is_bulk() { self.tables.tables.max(connections) } else { self.tables.tables };
        fill::clean_up(&self.address, tables).map_err(|error| self.failed("dropping the tables of", &error))
    }

    /// Checks that the tables exist. The error states what is missing, and that `load_command` loads it.
    pub fn check_dataset(&self, load_command: &str) -> Result<()> {
        let only_inserts =
            self.transactions.iter().all(|t| matches!(t.kind, OltpScript::Insert | OltpScript::BulkInsert));
        let rows = if only_inserts { 0 } else { self.tables.table_size };
        let missing =
            if self.is_bulk() { Ok(None) } else { fill::missing(&self.address, &self.tables, rows) };
        match missing.map_err(|error| self.failed("looking at", &error))? {
            None => Ok(()),
            Some(what) => Err(Error::Options(format!(
                "{what} in {}; load the dataset with: `{load_command}`",
                self.address.without_password()
            ))),
        }
    }

    /// Runs a query. Blanks separate the columns of the answer, line ends its rows.
    pub fn ask(&self, question: &str) -> Result<String> {
        let asked = Client::connect(&self.address, self.silence).and_then(|mut client| client.rows(question));
        let rows = asked.map_err(|error| self.failed("asking", &error))?;
        let line = |row: Vec<Option<String>>| -> String {
            row.into_iter().map(|value| value.unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        Ok(rows.into_iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    fn is_bulk(&self) -> bool {
        self.transactions.iter().all(|t| t.kind == OltpScript::BulkInsert)
    }

    fn failed(&self, what: &str, error: &SqlError) -> Error {
        Error::Options(format!("{what} {}: {error}", self.address.without_password()))
    }

    fn work(&self) -> Work<'_> {
        Work {
            address: &self.address,
            tables: &self.tables,
            transactions: &self.transactions,
            ids: &self.ids,
            unique: &self.unique,
            statements: &self.statements,
            connections: self.choice.connections(),
            seed: self.seed,
            silence: self.silence,
        }
    }
}

impl Blocking for Sql {
    type Session = Session;

    fn open(&self, number: u32) -> std::result::Result<Session, String> {
        Session::open(&self.work(), number).map_err(|error| error.to_string())
    }

    fn reopen(&self, session: &mut Session) -> std::result::Result<(), String> {
        session.reopen(&self.work()).map_err(|error| error.to_string())
    }

    fn cancel_handle(&self, session: &Session) -> Option<CancelHandle> {
        Some(session.cancel_handle())
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        let number = session.number();
        self.choice.next(number, session.random())
    }

    fn run(&self, session: &mut Session, class: u16, _: DueTime) -> std::result::Result<Done, Failure> {
        let work = self.work();
        let (out, into) = session.bytes();
        match session.run(&work, usize::from(class)) {
            Ok(tally) => {
                let (out_now, in_now) = session.bytes();
                Ok(Done {
                    hits: tally.hits,
                    misses: tally.misses,
                    // A new connection starts to count from zero.
                    bytes_out: out_now.saturating_sub(out),
                    bytes_in: in_now.saturating_sub(into),
                })
            }
            Err(error @ (SqlError::Lost(_) | SqlError::OtherProtocol(_) | SqlError::Unreachable(_))) => {
                Err(Failure::Lost(error.kind()))
            }
            Err(error) => {
                // The transaction is half done, whatever the server assumes.
                if let Err(lost) = session.roll_back(&work) {
                    return Err(Failure::Lost(lost.kind()));
                }
                if error.is_retryable() {
                    self.statements.add_retried();
                    return Err(Failure::Again(error.kind()));
                }
                Err(Failure::Refused(error.kind()))
            }
        }
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        session.reseed(&self.work(), seed);
    }

    fn close(&self, session: &mut Session) {
        session.quit();
    }
}
