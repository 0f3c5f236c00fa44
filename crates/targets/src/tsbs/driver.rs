//! The driver. The first phase writes all data, in requests whose order does not depend on the number of clients. In the others
//! clients ask queries, one after the other; each has its own result.

use std::sync::atomic::Ordering;

use clients::http::{HttpClient, HttpLimits};
use clients::target_url::{HTTP, TargetUrl};
use load::Result;
use load::engine::{Segment, SegmentOutcome, threads};
use load::progress::Progress;
use load::result::{Check, RunResult, Target};
use load::scenario::{Phase, Scenario};
use parking_lot::Mutex;
use serde_json::Value;

use super::client::{Clients, Rows, Work};
use super::faults::Faulty;
use super::lines::{Expected, Feed};
use super::options::{DatasetOptions, LOAD, check, is_load, mix};
use super::queries::{Subject, fuel};
use super::trucks::{Table, Trucks};
use crate::Context;
use crate::command_line::left_behind;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS,
    TargetKind, Verdict,
};
use crate::influx::InfluxQl;
use crate::limits::{HTTP_BODY_BYTES_MAX, TIMESERIES_READ_TIMEOUT};
use crate::plan::{plan, target_url};
use crate::timeseries::options::{Door, TargetOptions};
use crate::timeseries::product::Product;
use crate::timeseries::reader::Http;
use crate::timeseries::server::{Server, login};

/// The largest relative difference of a mean that counts as none: sums of floats have no fixed order.
const MEAN_TOLERANCE: f64 = 1e-4;

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "tsbs",
    new: |scenario| Ok(Box::new(TsbsDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct TsbsDriver {
    scenario: Scenario,
    options: DatasetOptions,
    target: TargetOptions,
    /// `None` for a server of ours that the run starts.
    url: Option<TargetUrl>,
    open: Option<Open>,
    feed: Option<Mutex<Feed>>,
    rows: Vec<Rows>,
}

/// The open server.
struct Open {
    server: Server,
    http: HttpClient,
    influx: InfluxQl,
}

impl TsbsDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let target = TargetOptions::read(scenario)?;
        let url = match scenario.target.url.is_empty() {
            true => None,
            false => Some(target_url(scenario, &HTTP)?),
        };
        check(scenario)?;
        let options = DatasetOptions::read(scenario)?;
        Ok(Self {
            options,
            scenario: scenario.clone(),
            target,
            url,
            open: None,
            feed: None,
            rows: Vec::new(),
        })
    }

    fn subject(&self) -> Subject {
        let DatasetOptions { trucks, compat, .. } = self.options;
        Subject { times: self.options.times(), trucks: self.scenario.scaled(trucks), compat }
    }

    /// Trucks, and a feed of all that they report.
    fn new_feed(&self) -> Feed {
        let (subject, seed) = (self.subject(), self.scenario.head.seed);
        let trucks = Trucks::new(subject.trucks as usize, subject.times.steps, seed);
        Feed::new(Faulty::new(trucks, seed), subject.times, self.options.lines_per_request)
    }

    fn compare(&self, phase: &str, expected: &Expected) -> Result<Verdict> {
        let influx = &self.open.as_ref().expect(NOT_OPEN).influx;
        let mut verdict = Verdict::default();
        for table in Table::ALL {
            let found = influx.series(&format!("SELECT count(*) FROM \"{}\"", table.name()))?;
            for ((_, field), count) in expected.values.iter().filter(|((one, _), _)| *one == table) {
                let column = format!("count_{field}");
                let what = format!("{phase}: values of {}.{field}", table.name());
                verdict.checks.push(Check::equal(what, count, cell(found.first(), &column)));
            }
        }
        for series in influx.series(&fuel())? {
            let fleet = series["tags"]["fleet"].as_str().unwrap_or_default();
            let found = cell(Some(&series), "mean_fuel_consumption").as_f64().unwrap_or(f64::NAN);
            let mean = expected.fuel.get(fleet).map_or(f64::NAN, |mean| mean.value());
            let is_equal = ((found - mean) / mean).abs() <= MEAN_TOLERANCE;
            verdict.checks.push(Check {
                what: format!("{phase}: mean fuel consumption of the fleet {fleet:?}"),
                expected: mean.to_string(),
                found: found.to_string(),
                passed: is_equal,
            });
        }
        let values: u64 = expected.values.values().sum();
        let lines = expected.lines;
        verdict.findings.push(format!("{phase}: {lines} lines with {values} values were written."));
        Ok(verdict)
    }
}

/// The first value of a column of a series; `null` without one.
fn cell(series: Option<&Value>, column: &str) -> Value {
    let Some(series) = series else { return Value::Null };
    let columns = series["columns"].as_array().into_iter().flatten();
    let at = columns.enumerate().find(|(_, name)| *name == column).map(|(at, _)| at);
    at.map_or(Value::Null, |at| series["values"][0][at].clone())
}

impl Driver for TsbsDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_process: Some("one process computes the reports of all trucks: leave out --workers"),
            starts_server: self.url.is_none(),
            ..Capabilities::of_threads(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let operations = &mix(phase).operations;
        let sliced = !is_load(phase) && operations.len() == 1;
        let all = PhaseCapabilities::new(phase, &self.scenario, sliced.then_some(SLICE_MS_THREADS));
        if is_load(phase) {
            return all;
        }
        let one = &all.segments[0];
        let named = |query: &String| Segment { name: format!("{}-{query}", phase.name), ..one.clone() };
        PhaseCapabilities { segments: operations.iter().map(named).collect(), ..all }
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let server = Server::open(self.url.as_ref(), &self.target, context, progress)?;
        let login = match &self.url {
            None => server.own_login()?,
            Some(url) => login(url, &self.target, Door::Influx),
        };
        let (base, tls) = (server.read.base(), server.read.tls_config()?);
        let base = base.trim_end_matches('/');
        let reader = Http::new(base, login.clone(), tls.clone());
        let product = match server.is_ours() {
            true => Some(format!("tacho {}", env!("CARGO_PKG_VERSION"))),
            false => Product::of(&reader)?.name,
        };
        let limits = HttpLimits { timeout: TIMESERIES_READ_TIMEOUT, body_bytes_max: HTTP_BODY_BYTES_MAX };
        let http = HttpClient::new(base, limits).with_header("Authorization", login).with_tls(tls);
        let influx = InfluxQl { http: reader, database: self.options.database.clone() };
        let target = Target {
            address: server.address.to_string(),
            product,
            started_by_run: server.is_started(),
            tls: self.url.as_ref().and_then(TargetUrl::verification),
            ..Target::default()
        };
        let (server_pid, server_process) = (server.running_pid(), server.process());
        self.open = Some(Open { server, http, influx });
        Ok(Opened { target, server_pid, server_process, ..Opened::default() })
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        if is_load(phase) {
            self.open.as_ref().expect(NOT_OPEN).influx.create(true)?;
            self.feed = Some(Mutex::new(self.new_feed()));
        }
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        self.rows = mix(phase).operations.iter().map(|_| Rows::default()).collect();
        let open = self.open.as_ref().expect(NOT_OPEN);
        let whole = plan(phase, &self.scenario, open.server.address, part);
        let subject = self.subject();
        let clients = |index: usize| {
            let name = &mix(phase).operations[index];
            let work = match (&self.feed, name.as_str()) {
                (Some(feed), LOAD) => Work::Load(feed),
                _ => Work::Ask { name, subject: &subject, rows: &self.rows[index] },
            };
            let (class, seed) = (self.scenario.class_of(name), self.scenario.head.seed);
            Ok(Clients { http: &open.http, database: &self.options.database, work, class, seed })
        };
        threads::run_in_turn(self.phase_capabilities(phase).segments, &whole, shared, clients, on_event)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let phase = end.phase;
        if is_load(phase) {
            let feed = self.feed.take().expect("BUG: a load has data");
            return self.compare(&phase.name, &feed.into_inner().expected);
        }
        let findings = mix(phase).operations.iter().zip(&self.rows).filter_map(|(query, rows)| {
            let (answers, rows) = (rows.answers.load(Ordering::Relaxed), rows.rows.load(Ordering::Relaxed));
            let mean = (answers > 0).then(|| rows as f64 / answers as f64)?;
            Some(format!("{}-{query}: an answer has {mean:.1} rows on average.", phase.name))
        });
        Ok(Verdict { findings: findings.collect(), ..Verdict::default() })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        if self.url.is_none() || self.target.command.is_some() || result.phases.is_empty() {
            return Vec::new();
        }
        let database = &self.options.database;
        vec![left_behind(&format!("the database {database:?}"), &format!("DROP DATABASE \"{database}\""))]
    }

    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some(Open { mut server, .. }) => server.stop(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsbs::queries::NAMES;

    fn driver(sets: &[&str]) -> std::result::Result<TsbsDriver, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        TsbsDriver::new(&Scenario::load("tsbs-iot", &sets).unwrap())
    }

    #[test]
    fn the_data_is_written_once_and_every_query_has_a_result_of_its_own() {
        let driver = driver(&[]).unwrap();
        let [load, ask] = &driver.scenario.phases[..] else { panic!() };
        assert_eq!(driver.phase_capabilities(load).segments.len(), 1);
        let names: Vec<String> =
            driver.phase_capabilities(ask).segments.into_iter().map(|segment| segment.name).collect();
        let expected: Vec<String> = NAMES.iter().map(|name| format!("{}-{name}", ask.name)).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_what_to_do() {
        for (sets, expected) in [
            (&["dataset.trucks=0"][..], "trucks = 0"),
            (&["dataset.colour=1"], "unknown field"),
            (&["phase.load.duration=1s"], "leave out `duration`"),
            (&["phase.ask.operations=['load', 'avg-load']"], "asks queries, or has"),
            (&["phase.ask.arrival=poisson", "phase.ask.rate=1"], "arrival = \"closed\""),
            (&["target.token=t"], "target.url"),
        ] {
            let error = driver(sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{sets:?}: {error}");
        }
    }

    #[test]
    fn a_cell_is_found_by_the_name_of_its_column() {
        let series = serde_json::json!({ "columns": ["time", "count_status"], "values": [[0, 7]] });
        assert_eq!(cell(Some(&series), "count_status"), 7);
        assert_eq!((cell(Some(&series), "other"), cell(None, "time")), (Value::Null, Value::Null));
    }
}
