//! The driver of the HiTSDB test.
//!
//! A cell is a number of timelines and of clients: a phase that writes new timelines, and phases that write on. Before each
//! cell a server that the run has started is started again on an empty directory. In a server that runs, the timelines of
//! each cell have names of their own.

use std::time::{SystemTime, UNIX_EPOCH};

use clients::target_url::{HTTP, TargetUrl};
use load::engine::{SegmentOutcome, event};
use load::progress::Progress;
use load::result::{RunResult, Target};
use load::scenario::{Phase, Scenario};
use load::{Error, Result};

use crate::Context;
use crate::command_line::left_behind;
use crate::driver::{Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, Verdict};
use crate::influx::{InfluxQl, Lines};
use crate::opentsdb::{OpenTsdb, Put};
use crate::plan::{plan, target_url};
use crate::prometheus::RemoteWrite;
use crate::request::RequestHead;
use crate::timeseries::findings::{self, DiskUse};
use crate::timeseries::options::{DatasetOptions, Door, PhaseOptions, TargetOptions};
use crate::timeseries::product::{Product, ServerKind};
use crate::timeseries::protocol::{Session, Writers, Writes};
use crate::timeseries::questdb::QuestDb;
use crate::timeseries::reader::{Http, ReadBack};
use crate::timeseries::request_log::{Order, PhaseRequests, RequestLog};
use crate::timeseries::server::{Server, login};
use crate::timeseries::timelines::{Timelines, tag_value_text};
use crate::timeseries::verify;
use crate::timeseries::victoria::Victoria;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The driver of one scenario.
pub(super) struct TimeseriesDriver {
    scenario: Scenario,
    door: Door,
    options: DatasetOptions,
    target: TargetOptions,
    /// `None` for a server of ours that the run starts.
    url: Option<TargetUrl>,
    open: Option<Open>,
    cell: Option<Cell>,
    /// The number of cells so far.
    cells: u64,
    /// The points of the cells before this one that are still there.
    points_before: u64,
    disk: Vec<DiskUse>,
}

/// The open server.
struct Open {
    server: Server,
    kind: ServerKind,
    login: Option<String>,
    /// `None` if the server cannot be read through this protocol.
    reader: Option<Box<dyn ReadBack>>,
    /// When the run began, seconds since the epoch.
    began_s: u64,
}

/// The cell in work.
struct Cell {
    timelines: Timelines,
    written: RequestLog,
    /// The timelines of the server before it.
    before: Option<u64>,
    /// The requests of the latest phase by second.
    by_second: Vec<u64>,
    /// The name of the latest phase.
    phase: String,
}

impl TimeseriesDriver {
    pub(super) fn new(scenario: &Scenario, door: Door) -> std::result::Result<Self, String> {
        let target = TargetOptions::read(scenario)?;
        let is_ours = scenario.target.url.is_empty();
        let url = if is_ours { None } else { Some(target_url(scenario, &HTTP)?) };
        if scenario.operations.len() != 1 {
            return Err("clients write: one [[operation]]".to_owned());
        }
        scenario.check_phases(PhaseOptions::read)?;
        Ok(Self {
            options: DatasetOptions::read(scenario)?,
            scenario: scenario.clone(),
            door,
            target,
            url,
            open: None,
            cell: None,
            cells: 0,
            points_before: 0,
            disk: Vec::new(),
        })
    }

    fn phase_options(&self, phase: &Phase) -> Result<(PhaseOptions, u64)> {
        let options = PhaseOptions::read(phase).map_err(|what| Error::Options(phase.error(what)))?;
        Ok((options, self.scenario.scaled(options.timelines)))
    }

    fn writes(&self) -> Box<dyn Writes> {
        match self.door {
            Door::OpenTsdb => Box::new(Put),
            Door::Influx => Box::new(Lines { database: self.options.database.clone() }),
            Door::Prometheus => Box::new(RemoteWrite),
        }
    }

    /// Begins a cell: starts a server again or names the timelines again.
    fn begin_cell(&mut self, count: u64) -> Result<()> {
        let keeps = self.options.accumulate;
        if self.cells > 0 && !keeps {
            self.finish_cell()?;
            self.points_before = 0;
        } else if let Some(cell) = &self.cell {
            self.points_before += cell.written.total().stored;
        }
        let open = self.open.as_mut().expect(NOT_OPEN);
        let is_wiped = self.cells > 0 && !keeps && open.server.wipe()?;
        if is_wiped || self.cells == 0 {
            open.connect(self.door, &self.options, self.url.as_ref(), &self.target)?;
        }
        if let Some(influx) = open.influx(self.door, &self.options)? {
            influx.create(!keeps)?;
        }
        let number = match open.server.is_started() {
            true if !keeps => 0,
            true => self.cells,
            // No other run and no other cell has it.
            false => open.began_s * 1_000 + self.cells % 1_000,
        };
        let start_ms = self.options.start_ms.unwrap_or_else(yesterday_ms);
        let timelines =
            self.options.timelines(count, tag_value_text(number), start_ms, self.scenario.head.seed);
        let before = match &open.reader {
            Some(reader) => reader.timelines(&timelines)?,
            None => None,
        };
        self.cells += 1;
        self.cell = Some(Cell {
            timelines,
            written: RequestLog::new(self.options.points_per_request),
            before,
            by_second: Vec::new(),
            phase: String::new(),
        });
        Ok(())
    }

    /// Stops a server that the run has started, and weighs its files.
    fn finish_cell(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.server.stop()?;
        if open.server.is_started()
            && let Some(cell) = self.cell.take()
        {
            self.weigh(&cell, "after an orderly stop");
        }
        Ok(())
    }

    fn weigh(&mut self, cell: &Cell, when: &'static str) {
        let bytes = self.open.as_ref().and_then(|open| open.server.disk_bytes());
        let points = self.points_before + cell.written.total().stored;
        let phase = cell.phase.clone();
        self.disk.extend(bytes.map(|bytes| DiskUse { phase, when, bytes, points }));
    }
}

/// The beginning of yesterday (UTC): the past, and a whole day before the date changes.
fn yesterday_ms() -> i64 {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    ((now_ms / DAY_MS).saturating_sub(1) * DAY_MS).cast_signed()
}

impl Open {
    fn new(server: Server) -> Self {
        let began_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let kind = ServerKind::Other { opentsdb: false, influx: false };
        Self { server, kind, login: None, reader: None, began_s }
    }

    fn http(&self) -> Result<Http> {
        let base = self.server.read.base();
        Ok(Http::new(base.trim_end_matches('/'), self.login.clone(), self.server.read.tls_config()?))
    }

    /// Finds out what the server is, and how to read it. Returns its name.
    fn connect(
        &mut self,
        door: Door,
        options: &DatasetOptions,
        url: Option<&TargetUrl>,
        target: &TargetOptions,
    ) -> Result<Option<String>> {
        self.login = match url {
            None => self.server.own_login()?,
            Some(url) => login(url, target, door),
        };
        let product = match self.server.is_ours() {
            true => Product { name: None, kind: ServerKind::Other { opentsdb: true, influx: true } },
            false => Product::of(&self.http()?)?,
        };
        self.kind = product.kind;
        let http = self.http()?;
        self.reader = match (self.kind, door) {
            (ServerKind::Victoria, Door::Influx) => Some(Box::new(Victoria { http, suffix: "_value" })),
            (ServerKind::Victoria, _) => Some(Box::new(Victoria { http, suffix: "" })),
            (ServerKind::QuestDb, _) => Some(Box::new(QuestDb(http))),
            (ServerKind::Other { influx: true, .. }, Door::Influx) => {
                Some(Box::new(InfluxQl { http, database: options.database.clone() }))
            }
            (ServerKind::Other { opentsdb: true, .. }, _) => Some(Box::new(OpenTsdb(http))),
            (ServerKind::Other { .. }, _) => None,
        };
        Ok(product.name)
    }

    /// The interface that makes databases, if the server needs one.
    fn influx(&self, door: Door, options: &DatasetOptions) -> Result<Option<InfluxQl>> {
        let needs = door == Door::Influx && matches!(self.kind, ServerKind::Other { influx: true, .. });
        let database = options.database.clone();
        Ok(if needs { Some(InfluxQl { http: self.http()?, database }) } else { None })
    }
}

impl Driver for TimeseriesDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_process: Some("one process knows the points of all clients: leave out --workers"),
            starts_server: self.url.is_none(),
            ..Capabilities::of_events(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, None)
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let server = Server::open(self.url.as_ref(), &self.target, context, progress)?;
        let mut open = Open::new(server);
        let name = open.connect(self.door, &self.options, self.url.as_ref(), &self.target)?;
        let server = &open.server;
        let ours = server.is_ours().then(|| format!("tacho {}", env!("CARGO_PKG_VERSION")));
        let target = Target {
            address: server.address.to_string(),
            product: ours.or(name),
            started_by_run: server.is_started(),
            tls: self.url.as_ref().and_then(TargetUrl::verification),
            ..Target::default()
        };
        let (server_pid, server_process) = (server.running_pid(), server.process());
        self.open = Some(open);
        Ok(Opened { target, server_pid, server_process, ..Opened::default() })
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        let (options, count) = self.phase_options(phase)?;
        if !options.continues {
            return self.begin_cell(count);
        }
        match &self.cell {
            Some(cell) if cell.timelines.count == count => Ok(()),
            _ => Err(Error::Options(phase.error(format!(
                "it writes on into {count} timelines of the phase before it, which must run as well"
            )))),
        }
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let (options, count) = self.phase_options(phase)?;
        let writes = self.writes();
        let open = self.open.as_ref().expect(NOT_OPEN);
        let cell = self.cell.as_mut().expect(NOT_OPEN);
        let order = Order {
            first: cell.written.next_request(),
            clients: phase.connections().into(),
            requests: options.cycles.map(|cycles| (cycles * count).div_ceil(self.options.points_per_request)),
        };
        let (host, base) = match &self.url {
            Some(url) => (url.authority(), url.path.trim_matches('/')),
            None => (open.server.address.to_string(), ""),
        };
        let path = if base.is_empty() { writes.path() } else { format!("/{base}{}", writes.path()) };
        let writers = Writers {
            writes: writes.as_ref(),
            timelines: &cell.timelines,
            order,
            points_per_request: self.options.points_per_request,
            head: RequestHead { host, login: open.login.clone() },
            path,
        };
        let tls = self.url.as_ref().map(TargetUrl::tls_client).transpose()?.flatten();
        let plan = plan(phase, &self.scenario, open.server.address, part).over(tls);
        let outcome = event::run(&writers, &plan, shared, on_event)?;
        cell.by_second = by_second(&outcome.sessions);
        phase.name.clone_into(&mut cell.phase);
        let clients = outcome.sessions.into_iter().map(|session| session.requests).collect();
        cell.written.add(PhaseRequests { order, clients });
        Ok(outcome.segments)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let name = &end.phase.name;
        let (open, cell) = (self.open.as_ref().expect(NOT_OPEN), self.cell.take().expect(NOT_OPEN));
        let verified = match &open.reader {
            Some(reader) => {
                let of_cell = verify::Cell {
                    phase: name,
                    timelines: &cell.timelines,
                    written: &cell.written,
                    before: cell.before,
                    sample: self.options.sample,
                };
                of_cell.verify(reader.as_ref())
            }
            None => Ok(Verdict {
                findings: vec![format!(
                    "{name}: the server offers no way to read back; nothing was compared."
                )],
                ..Verdict::default()
            }),
        };
        let mut findings = vec![findings::written(name, &cell.written, cell.timelines.count)];
        findings.extend(findings::course(name, &cell.by_second, self.options.points_per_request));
        self.weigh(&cell, "running");
        self.cell = Some(cell);
        let mut verdict = verified?;
        findings.append(&mut verdict.findings);
        Ok(Verdict { findings, ..verdict })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let figures =
            result.phases.iter().map(|phase| findings::figures(phase, self.options.points_per_request));
        let mut all: Vec<String> = figures.chain(self.disk.iter().map(DiskUse::sentence)).collect();
        if self.url.is_some() && self.target.command.is_none() && !result.phases.is_empty() {
            let what = "points of metrics that begin with `metricname`";
            all.push(left_behind(what, "delete these metrics, or the database, with the server's own means"));
        }
        all
    }

    fn close(&mut self) -> Result<()> {
        self.finish_cell()
    }
}

/// The acknowledged requests of all clients by second.
fn by_second(sessions: &[Session]) -> Vec<u64> {
    let seconds = sessions.iter().map(|session| session.by_second.len()).max().unwrap_or(0);
    let of = |second: usize| sessions.iter().filter_map(move |session| session.by_second.get(second));
    (0..seconds).map(|second| of(second).map(|requests| u64::from(*requests)).sum()).collect()
}
