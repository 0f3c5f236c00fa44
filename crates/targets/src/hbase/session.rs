//! The client of one connection number: a connection to each region server that it needs, calls that follow regions which
//! move, and the rows that it draws.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clients::CancelHandle;
use load::dataset::Random;
use load::limits::LOOP_SLEEP_MAX_MS;
use load::protocol::Failure;

use super::cluster::Cluster;
use super::connection::{CallError, Connection, Server};
use super::exception::Remedy;
use super::java_random::JavaRandom;
use super::operation::Operation;
use super::pe::PeClient;
use super::regions::{Region, RegionMap};
use super::rows::Dataset;
use super::tally::{Tally, WrittenRows};
use crate::limits::HBASE_ATTEMPTS_MAX;

/// The first pause before a call is repeated (`hbase.client.pause`), and its factors as in HBase's client
/// (`HConstants.RETRY_BACKOFF`).
const PAUSE: Duration = Duration::from_millis(100);
const BACKOFF: [u32; 8] = [1, 2, 3, 5, 10, 20, 40, 100];

/// The common part of all sessions of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) data: &'a Dataset,
    pub(super) tally: &'a Tally,
    pub(super) written: &'a WrittenRows,
}

/// What the answer of the latest operation must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Expected {
    #[default]
    Nothing,
    /// Cells of these rows, in their order; rows may be missing.
    Rows(Vec<u64>),
    /// Cells of rows from the first up to before the second, in their order.
    Range(u64, u64),
}

/// The state of a connection number.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u32,
    /// Draws rows, and values where they are those of PerformanceEvaluation.
    pub(super) random: JavaRandom,
    /// Draws operations.
    pub(super) choice: Random,
    /// The next row of a sequential operation.
    pub(super) next_row: u64,
    /// The rows that are left; `None` for no end.
    pub(super) left: Option<u64>,
    pub(super) regions: Arc<RegionMap>,
    links: BTreeMap<Server, Connection>,
    cancel_handle: CancelHandle,
    /// Bytes of connections that are closed.
    closed_bytes: (u64, u64),
    /// The cells of the latest answers.
    pub(super) answers: Vec<u8>,
    pub(super) expected: Expected,
    /// What PerformanceEvaluation would measure.
    pub(super) pe: PeClient,
}

impl Session {
    /// Opens a connection to each region server of the table.
    pub(super) fn open(
        work: &Work<'_>,
        number: u32,
        seed: u64,
        rows: (u64, Option<u64>),
    ) -> Result<Self, String> {
        let mut session = Self {
            number,
            random: JavaRandom::of_client(seed, number),
            choice: Random::keyed(seed, 0, number.into()),
            next_row: rows.0,
            left: rows.1,
            regions: work.cluster.regions()?,
            links: BTreeMap::new(),
            cancel_handle: CancelHandle::default(),
            closed_bytes: (0, 0),
            answers: Vec::new(),
            expected: Expected::Nothing,
            pe: PeClient::default(),
        };
        session.connect(work)?;
        Ok(session)
    }

    /// Opens the connections again, to where the regions are now.
    pub(super) fn reopen(&mut self, work: &Work<'_>) -> Result<(), String> {
        let servers: Vec<Server> = self.links.keys().cloned().collect();
        servers.iter().for_each(|server| self.drop_link(server));
        self.cancel_handle = CancelHandle::default();
        self.regions = work.cluster.relocate(&self.regions)?;
        self.connect(work)
    }

    fn connect(&mut self, work: &Work<'_>) -> Result<(), String> {
        for server in self.regions.servers() {
            self.link(work, &server).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        self.cancel_handle.clone()
    }

    /// Bytes of requests and of answers so far.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let add = |(out, into): (u64, u64), link: &Connection| (out + link.bytes_out, into + link.bytes_in);
        self.links.values().fold(self.closed_bytes, add)
    }

    /// Takes `count` of the rows that are left, or fewer.
    pub(super) fn take(&mut self, count: u64) -> u64 {
        let taken = self.left.map_or(count, |left| left.min(count));
        self.left = self.left.map(|left| left - taken);
        taken
    }

    /// The row of the next put or get.
    pub(super) fn draw_row(&mut self, work: &Work<'_>, operation: &Operation) -> u64 {
        if !operation.kind.is_sequential() {
            return work.data.random_row(&mut self.random);
        }
        let row = self.next_row % work.data.rows;
        self.next_row += 1;
        row
    }

    /// The connection to a server; opens it if needed.
    pub(super) fn link(&mut self, work: &Work<'_>, server: &Server) -> Result<&mut Connection, CallError> {
        if !self.links.contains_key(server) {
            if self.cancel_handle.is_cancelled() {
                return Err(CallError::Lost("cancelled".to_owned()));
            }
            let link = Connection::open(server, "ClientService", work.cluster.silence)?;
            self.cancel_handle.add(link.stream());
            self.links.insert(server.clone(), link);
        }
        Ok(self.links.get_mut(server).expect("BUG: it was inserted"))
    }

    fn drop_link(&mut self, server: &Server) {
        if let Some(link) = self.links.remove(server) {
            self.closed_bytes.0 += link.bytes_out;
            self.closed_bytes.1 += link.bytes_in;
        }
    }

    /// Carries out a call at the region of a row, and repeats it where the region has moved or cannot answer now.
    pub(super) fn at_region<T>(
        &mut self,
        work: &Work<'_>,
        row: &[u8],
        mut call: impl FnMut(&mut Connection, &Region) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let mut attempts = Attempts::new();
        loop {
            let regions = Arc::clone(&self.regions);
            let region = regions.of_row(row);
            match self.link(work, &region.server).and_then(|link| call(link, region)) {
                Ok(answer) => return Ok(answer),
                Err(error) => self.recover(work, &mut attempts, region, error)?,
            }
        }
    }

    /// Prepares the repetition of a call that failed at a region: finds the region again, or waits. Returns the failure if
    /// the call is not repeated.
    pub(super) fn recover(
        &mut self,
        work: &Work<'_>,
        attempts: &mut Attempts,
        region: &Region,
        error: CallError,
    ) -> Result<(), Failure> {
        let (reason, is_lost) = match &error {
            CallError::Exception(exception) if exception.remedy == Remedy::GiveUp => {
                work.tally.add_refused();
                return Err(Failure::Refused(exception.short_class().to_owned()));
            }
            CallError::Exception(exception) => (exception.short_class().to_owned(), false),
            CallError::Lost(why) => {
                work.tally.add_lost();
                self.drop_link(&region.server);
                (why.clone(), true)
            }
        };
        if !attempts.next(work.cluster.silence, &self.cancel_handle) {
            work.tally.add_refused();
            let why = format!("{reason}, after {} attempts", attempts.count);
            return Err(if is_lost { Failure::Lost(why) } else { Failure::Refused(why) });
        }
        work.tally.add_repeated(&reason);
        if let CallError::Exception(exception) = &error
            && exception.remedy == Remedy::Wait
        {
            return Ok(());
        }
        let moved_to = match error {
            CallError::Exception(exception) => exception.moved_to,
            CallError::Lost(_) => None,
        };
        self.regions = match moved_to {
            Some((host, port)) => work.cluster.moved(&self.regions, &region.name, &Server { host, port }),
            None => work.cluster.relocate(&self.regions).map_err(Failure::Refused)?,
        };
        Ok(())
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(super) struct Attempts {
    began: Instant,
    count: u32,
}

impl Attempts {
    /// The first attempt begins now.
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), count: 1 }
    }

    /// Waits for the next attempt. Returns false if there is none: there were too many, they take too long, or the session is
    /// cancelled.
    fn next(&mut self, silence: Duration, cancel_handle: &CancelHandle) -> bool {
        let factor = BACKOFF[(self.count as usize - 1).min(BACKOFF.len() - 1)];
        let until = Instant::now() + PAUSE * factor;
        if self.count >= HBASE_ATTEMPTS_MAX || until.duration_since(self.began) > silence {
            return false;
        }
        self.count += 1;
        loop {
            if cancel_handle.is_cancelled() {
                return false;
            }
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return true;
            }
            thread::sleep(rest.min(Duration::from_millis(LOOP_SLEEP_MAX_MS)));
        }
    }
}
