//! The driver. In a phase all clients ask for rows, or all write rows; `options.rs` has the keys.

use clients::target_url::{HTTP, TargetUrl};
use load::engine::{SegmentOutcome, threads};
use load::progress::Progress;
use load::result::{RunResult, Target};
use load::sampling::server_pid;
use load::scenario::{Phase, Scenario};
use load::{Error, Result};

use super::block::block;
use super::options::{DatasetOptions, Work, check, login};
use super::reads::{Questions, ask};
use super::sensors::{Sensor, list};
use super::server::Server;
use super::streams::Streams;
use super::tally::Tally;
use super::uploads::Uploads;
use super::verify::{self, Stored};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS,
    TargetKind, Verdict, own_server,
};
use crate::plan::{plan, target_url};
use crate::timeseries::options::TargetOptions as Login;

/// Process names of servers.
const PROCESS_NAMES: [&str; 2] = ["java", "tacho"];
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "gsn",
    new: |scenario| Ok(Box::new(GsnDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
struct GsnDriver {
    scenario: Scenario,
    options: DatasetOptions,
    login: Login,
    /// `None` for a server of ours that the run starts.
    url: Option<TargetUrl>,
    streams: Streams,
    open: Option<Server>,
    /// The sensors that questions ask for.
    sensors: Vec<Sensor>,
    tally: Tally,
    /// For each stream the number of its acknowledged rows.
    written: Vec<u64>,
    /// The sentences about all phases so far.
    figures: Vec<String>,
}

impl GsnDriver {
    fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let url = match scenario.target.url.is_empty() {
            true => None,
            false => Some(target_url(scenario, &HTTP)?),
        };
        check(scenario)?;
        let options = DatasetOptions::read(scenario)?;
        let count = scenario.scaled(options.streams);
        let streams = Streams {
            count,
            fields: options.fields,
            prefix: options.prefix.clone(),
            start_ms: options.start_ms.unwrap_or_else(yesterday_ms),
        };
        Ok(Self {
            login: login(scenario)?,
            scenario: scenario.clone(),
            options,
            url,
            streams,
            open: None,
            sensors: Vec::new(),
            tally: Tally::default(),
            written: vec![0; usize::try_from(count).unwrap_or_default()],
            figures: Vec::new(),
        })
    }

    fn work(phase: &Phase) -> Result<Work> {
        Work::of(phase).map_err(|what| Error::Options(phase.error(what)))
    }

    fn server(&self) -> &Server {
        self.open.as_ref().expect(NOT_OPEN)
    }

    /// The sensors of the server that the scenario names, or all of them.
    fn choose(&self, listed: Vec<Sensor>) -> Result<Vec<Sensor>> {
        let mut chosen = listed;
        for name in &self.options.sensors {
            if !chosen.iter().any(|sensor| sensor.name.eq_ignore_ascii_case(name)) {
                let names: Vec<&str> = chosen.iter().map(|sensor| sensor.name.as_str()).take(20).collect();
                return Err(Error::Options(format!(
                    "dataset.sensors: the server has no sensor {name}; it has {}",
                    names.join(", ")
                )));
            }
        }
        if !self.options.sensors.is_empty() {
            let is_named = |sensor: &Sensor| {
                self.options.sensors.iter().any(|name| name.eq_ignore_ascii_case(&sensor.name))
            };
            chosen.retain(is_named);
        }
        match chosen.is_empty() {
            true => Err(Error::Options(format!(
                "{}/gsn lists no virtual sensors that this login may read",
                self.server().url
            ))),
            false => Ok(chosen),
        }
    }

    /// Compares the number of rows of the answers with that of the sensor after the phase.
    fn verify_questions(&self, phase: &str) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        let mut stored = Stored::default();
        for ((sensor, wanted), seen) in &self.tally.seen {
            let most = self.tally.seen.range((*sensor, 0)..=(*sensor, u64::MAX)).next_back();
            let most = most.map_or(*wanted, |((_, wanted), _)| *wanted);
            let Sensor { name, fields } = &self.sensors[*sensor];
            let after = stored.rows(*sensor, || {
                let body = ask(&self.server().http, name, most)
                    .map_err(|failure| Error::Answer(format!("{name}: {failure:?}")))?;
                super::answer::read(&body, name, fields).map(|contents| contents.rows).map_err(Error::Answer)
            });
            let after = match after {
                Ok(after) => after,
                Err(error) => {
                    stored.unanswered(&error);
                    continue;
                }
            };
            stored.compare((name, *wanted), *seen, after, self.options.growing);
        }
        verdict.checks.push(stored.check(phase));
        verdict.findings.extend(stored.fault());
        Ok(verdict)
    }

    fn note(&mut self, phase: &str) {
        self.figures.extend(self.tally.sentence(phase));
        if self.options.gsn_compat && !self.tally.kept.is_empty() {
            let block = block(&self.server().url, &self.tally.kept, self.tally.seconds());
            self.figures
                .push(format!("{phase}: what GSN's eval-queries prints for these answers:\n\n{block}"));
        }
    }
}

/// The beginning of yesterday (UTC).
fn yesterday_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    ((now.as_millis() as u64 / DAY_MS).saturating_sub(1) * DAY_MS).cast_signed()
}

impl Driver for GsnDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_process: Some("one process counts the rows of all clients: leave out --workers"),
            starts_server: self.url.is_none(),
            ..Capabilities::of_threads(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let sliced = matches!(Work::of(phase), Ok(Work::Ask { queries: None, .. }));
        PhaseCapabilities::new(phase, &self.scenario, sliced.then_some(SLICE_MS_THREADS))
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let server = match &self.url {
            Some(url) => Server::running(url, &self.login)?,
            None => {
                let (program, count) = (context.server_binary.display(), self.streams.count);
                progress.step(format!("starting {program} serve with {count} sensors"));
                Server::ours(context, &self.streams)?
            }
        };
        let target = match server.is_started() {
            true => own_server(server.address.to_string(), "fsync".to_owned()),
            false => Target {
                address: server.address.to_string(),
                tls: self.url.as_ref().and_then(TargetUrl::verification),
                ..Target::default()
            },
        };
        let server_process = server.process();
        let server_pid = match server_process {
            Some(_) => None,
            None => server_pid(server.address, &PROCESS_NAMES),
        };
        self.open = Some(server);
        Ok(Opened { target, server_pid, server_process, ..Opened::default() })
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        if matches!(Self::work(phase)?, Work::Ask { .. }) && self.sensors.is_empty() {
            self.sensors = self.choose(list(&self.server().http, "")?)?;
        }
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let work = Self::work(phase)?;
        let class = self.scenario.class_of(work.operation());
        let server = self.open.as_ref().expect(NOT_OPEN);
        let plan = plan(phase, &self.scenario, server.address, part);
        self.tally = Tally::default();
        match work {
            Work::Ask { size, sizes, queries } => {
                let from = (&server.http, &self.sensors[..]);
                let questions = Questions::new(from, (size, sizes, queries), class, self.scenario.head.seed);
                let outcome = threads::run(&questions, &plan, shared, on_event)?;
                self.tally = questions.into_tally();
                Ok(outcome.segments)
            }
            Work::Upload { rows_per_request, rows } => {
                let uploads = Uploads {
                    http: &server.http,
                    streams: &self.streams,
                    connections: phase.connections().into(),
                    rows_per_request,
                    rows,
                    begin: &self.written,
                    class,
                };
                let before: u64 = self.written.iter().sum();
                let outcome = threads::run(&uploads, &plan, shared, on_event)?;
                let streams = outcome.sessions.iter().flat_map(|session| &session.streams);
                let written: Vec<(u64, u64)> = streams.copied().collect();
                for (stream, rows) in written {
                    self.written[stream as usize] = rows;
                }
                let rows = self.written.iter().sum::<u64>() - before;
                self.figures.push(verify::written(&phase.name, &self.streams, rows, &outcome.segments));
                Ok(outcome.segments)
            }
        }
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let name = &end.phase.name;
        match Self::work(end.phase)? {
            Work::Ask { .. } => {
                self.note(name);
                self.verify_questions(name)
            }
            Work::Upload { .. } => verify::uploads(name, &self.server().http, &self.streams, &self.written),
        }
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let mut all = self.figures.clone();
        if self.url.is_some() && !result.phases.is_empty() && self.written.iter().any(|rows| *rows > 0) {
            let what = format!("rows of the sensors {}0 and so on", self.streams.prefix);
            all.push(crate::command_line::left_behind(&what, "delete the tables of these sensors"));
        }
        all
    }

    fn close(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), Server::stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(scenario: &str, sets: &[&str]) -> std::result::Result<GsnDriver, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        GsnDriver::new(&Scenario::load(scenario, &sets).unwrap())
    }

    #[test]
    fn the_scaling_table_has_a_phase_for_each_cell() {
        let driver = driver("gsn-queries", &[]).unwrap();
        let cells = driver.scenario.phases.iter().filter(|phase| phase.name.contains("-of-"));
        assert_eq!(cells.count(), 3 * 7);
        assert!(driver.url.is_some());
    }

    #[test]
    fn a_run_of_uploads_starts_its_server() {
        let driver = driver("gsn-insertion", &["scale=0.1"]).unwrap();
        assert!(driver.capabilities().starts_server);
        assert_eq!((driver.streams.count, driver.streams.fields), (18, 10));
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_what_to_do() {
        for (scenario, sets, expected) in [
            ("eval-queries", &["target.url="][..], "--target"),
            ("eval-queries", &["phase.queries.size=0"], "size = 0; use 1 to"),
            ("eval-queries", &["phase.queries.rows=5"], "for operation `upload`"),
            ("eval-queries", &["phase.queries.sizes=few"], "unknown variant"),
            ("eval-queries", &["dataset.colour=1"], "unknown field"),
            ("eval-queries", &["target.password=x"], "needs a user"),
            ("eval-queries", &["target.token=x", "target.user=y"], "a token, or user"),
            ("gsn-insertion", &["target.token=x"], "target.url"),
            ("gsn-insertion", &["dataset.streams=0"], "streams = 0"),
            ("gsn-insertion", &["dataset.prefix=A B"], "prefix"),
            ("gsn-insertion", &["phase.single.size=5"], "for operation `rows`"),
        ] {
            let error = driver(scenario, sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{scenario} {sets:?}: {error}");
        }
    }
}
