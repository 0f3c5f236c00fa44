//! Scenarios of driver `reads`: queries of a dashboard over HTTP, to a server that the driver starts and fills.
//!
//! `[dataset]`: `devices` (one value every ten seconds each) and `hours` of history. The operations are the queries by
//! name, and `write`, a request with a thousand points for keys that no query reads; `about` is for readers. A phase
//! has one mix in closed loop that queries, and may have mixes that write. Each query runs for the whole duration of
//! the phase, one after the other, and has its own result.

use load::engine::{Segment, SegmentOutcome, threads};
use load::progress::Progress;
use load::protocol::OperationChoice;
use load::sampling::Source;
use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use load::{Error, Result};

use crate::sources::Prometheus;
use serde::Deserialize;

use super::blocking::{Dashboard, Reads};
use super::fill::{DataSize, ROWS, WRITE};
use super::queries::NAMES;
use crate::Context;
use crate::devices::Client;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS,
    TargetKind, Verdict, own_server,
};
use crate::plan::plan;
use crate::server::{ADMIN, DataDirectory, Server, ServerInstance};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct DatasetOptions {
    devices: u32,
    hours: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationOptions {
    #[serde(rename = "about")]
    _about: Option<String>,
}

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "reads",
    new: |scenario| Ok(Box::new(ReadsDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct ReadsDriver {
    scenario: Scenario,
    size: DataSize,
    started: Option<Started>,
}

/// The server with its data.
struct Started {
    server: Server,
    dashboard: Dashboard,
    instance: ServerInstance,
    /// Declared after the server, so that it is dropped after it.
    _data_directory: DataDirectory,
}

impl ReadsDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        if !scenario.target.url.is_empty() {
            return Err(
                "the questions go to a server that is filled for them: leave out the target".to_owned()
            );
        }
        let DatasetOptions { devices, hours } = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let least = DataSize::LEAST;
        if devices < least.devices || hours < least.hours {
            return Err(format!(
                "the questions need at least {} devices and {} hours",
                least.devices, least.hours
            ));
        }
        for operation in &scenario.operations {
            operation.options::<OperationOptions>()?;
            if operation.name != WRITE && !NAMES.contains(&operation.name.as_str()) {
                let place = operation.place();
                return Err(format!("{place}: there is no such question; there are {}", NAMES.join(", ")));
            }
        }
        scenario.check_phases(check)?;
        Ok(Self { scenario: scenario.clone(), size: DataSize { devices, hours }, started: None })
    }

    /// One class for each mix: its write operation, or the query.
    fn classes_of(&self, phase: &Phase, question: &str) -> std::result::Result<OperationChoice, String> {
        let class = |mix: &Mix| self.scenario.class_of(if is_writing(mix) { WRITE } else { question });
        let groups = phase.mixes.iter().map(|mix| (mix.connections, vec![(class(mix), 1)]));
        OperationChoice::new(&groups.collect::<Vec<_>>())
    }
}

fn is_writing(mix: &Mix) -> bool {
    mix.operations == [WRITE]
}

/// The names of the queries of a phase.
fn questions(phase: &Phase) -> &[String] {
    phase.mixes.iter().find(|mix| !is_writing(mix)).map_or(&[], |mix| &mix.operations)
}

fn check(phase: &Phase) -> std::result::Result<(), String> {
    let (writing, asking): (Vec<&Mix>, Vec<&Mix>) = phase.mixes.iter().partition(|mix| is_writing(mix));
    let [asking] = asking[..] else { return Err("one of its mixes must ask questions".to_owned()) };
    if asking.arrival != Arrival::Closed {
        return Err("questions are asked one after the other: arrival = \"closed\"".to_owned());
    }
    if asking.operations.iter().any(|name| name == WRITE) {
        return Err(format!("a mix asks questions, or has operations = [\"{WRITE}\"] alone"));
    }
    if writing.iter().any(|mix| matches!(mix.arrival, Arrival::Steps | Arrival::Staircase)) {
        return Err("the rate of writing stays the same: arrival = \"fixed\"".to_owned());
    }
    if phase.duration.is_none() {
        return Err("it has no `duration`, for which each question is asked".to_owned());
    }
    phase.mixes.iter().try_for_each(|mix| mix.no_options("its options"))
}

impl Driver for ReadsDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_process: Some("one process fills the server and asks it: leave out --workers"),
            starts_server: true,
            ..Capabilities::of_threads(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        // Several queries have their own results, and writes are on a schedule.
        let sliced = questions(phase).len() == 1 && !phase.mixes.iter().any(is_writing);
        let all = PhaseCapabilities::new(phase, &self.scenario, sliced.then_some(SLICE_MS_THREADS));
        let one = &all.segments[0];
        let named = |question: &String| Segment { name: format!("{}-{question}", phase.name), ..one.clone() };
        PhaseCapabilities { segments: questions(phase).iter().map(named).collect(), ..all }
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let data_directory = DataDirectory::new(None)?;
        let instance = ServerInstance::new(&context.server_binary, data_directory.path())?;
        let binary = context.server_binary.display();
        progress.step(format!("starting {binary} serve --data {}", data_directory.path().display()));
        let server = Server::start(&instance)?;
        let client = Client::login(&instance.http_url(), ADMIN, &instance.admin_password()?)?;
        let durability = client.status()["durability"].as_str().unwrap_or("unknown").to_owned();
        progress.step(format!("filling {} devices", self.size.devices));
        let dashboard = Dashboard::fill(client, self.size)?;
        progress.step(format!("{} rows written", dashboard.rows()));
        let target = own_server(instance.http.to_string(), durability);
        let server_pid = Some(server.sampled().pid());
        self.started = Some(Started { server, dashboard, instance, _data_directory: data_directory });
        Ok(Opened { target, server_pid, ..Opened::default() })
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let source =
            |started: &Started| Box::new(Prometheus::tacho(&started.instance.http_url())) as Box<dyn Source>;
        self.started.iter().map(source).collect()
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let started = self.started.as_ref().expect(NOT_OPEN);
        let whole = plan(phase, &self.scenario, started.instance.http, part);
        let reads = |index: usize| {
            let choice = self.classes_of(phase, &questions(phase)[index]).map_err(Error::Options)?;
            Ok(Reads { dashboard: &started.dashboard, classes: &whole.classes, choice })
        };
        threads::run_in_turn(self.phase_capabilities(phase).segments, &whole, shared, reads, on_event)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let PhaseEnd { phase, segments, .. } = *end;
        let started = self.started.as_ref().expect(NOT_OPEN);
        let mut findings = vec![format!(
            "{}: {} rows were stored before the first question.",
            phase.name,
            started.dashboard.rows()
        )];
        if phase.mixes.iter().any(is_writing) {
            let class = usize::from(self.scenario.class_of(WRITE));
            let written: u64 =
                segments.iter().map(|s| s.recorder.classes()[class].counts.completed_within_window).sum();
            let took: f64 = segments.iter().map(|segment| segment.measured.as_secs_f64()).sum();
            findings.push(format!(
                "{}: {:.0} points a second were written while questions were asked; CPU time per operation is that of questions \
                 and writes together.",
                phase.name,
                (written * ROWS as u64) as f64 / took.max(1e-9)
            ));
        }
        Ok(Verdict { findings, ..Verdict::default() })
    }

    fn close(&mut self) -> Result<()> {
        let Some(Started { mut server, .. }) = self.started.take() else { return Ok(()) };
        match server.ended()? {
            Some(status) => Err(server.failed(format!("ended during the run ({status})"))),
            None => server.stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(sets: &[&str]) -> std::result::Result<ReadsDriver, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        ReadsDriver::new(&Scenario::load("reads", &sets).unwrap())
    }

    #[test]
    fn every_question_is_asked_at_rest_and_while_writing_and_has_a_result_of_its_own() {
        let driver = driver(&[]).unwrap();
        let [rest, writing] = &driver.scenario.phases[..] else { panic!() };
        for phase in [rest, writing] {
            let segments = driver.phase_capabilities(phase).segments;
            let mut names: Vec<String> = segments.into_iter().map(|segment| segment.name).collect();
            // The query comes first, because the writes of later queries add rows to the table.
            assert_eq!(names[0], format!("{}-sql-count-avg", phase.name));
            let mut expected: Vec<String> =
                NAMES.iter().map(|name| format!("{}-{name}", phase.name)).collect();
            names.sort();
            expected.sort();
            assert_eq!(names, expected);
        }
        let write = driver.scenario.class_of(WRITE);
        let choice = driver.classes_of(writing, "one-1h").unwrap();
        let mut random = load::dataset::Random::new(1);
        assert_eq!(choice.next(0, &mut random), Some(driver.scenario.class_of("one-1h")));
        assert_eq!(choice.next(1, &mut random), Some(write));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_what_to_do() {
        for (sets, expected) in [
            (&["dataset.devices=99"][..], "at least 100 devices"),
            (&["dataset.hours=11"], "12 hours"),
            (&["target.url=http://h"], "leave out the target"),
            (&["phase.rest.arrival=poisson", "phase.rest.rate=1"], "arrival = \"closed\""),
            (&["phase.rest.operations=['write']"], "must ask questions"),
            (&["phase.rest.operations=['one-1h', 'write']"], "asks questions, or has"),
            (&["operation.write.colour=1"], "unknown field"),
        ] {
            let error = driver(sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{sets:?}: {error}");
        }
    }
}
