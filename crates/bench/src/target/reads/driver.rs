//! Scenarios of driver `reads`: queries of a dashboard over HTTP, to a server that the driver starts and fills.
//!
//! `[dataset]`: `devices` (one value every ten seconds each) and `hours` of history. The operations are the queries by
//! name, and `write`, a request with a thousand points for keys that no query reads; `about` is for readers. A phase
//! has one mix in closed loop that queries, and may have mixes that write. Each query runs for the whole duration of
//! the phase, one after the other, and has its own result.

use serde::Deserialize;

use super::blocking::{Dashboard, Reads};
use super::fill::{DataSize, ROWS, WRITE};
use super::queries::NAMES;
use crate::engine::{Ended, Event, Plan, Segment, SegmentOutcome, Shared, threads};
use crate::error::{Error, Result};
use crate::http::Client;
use crate::options::Context;
use crate::progress::Progress;
use crate::protocol::OperationChoice;
use crate::result::{Check, Target};
use crate::sampling::{Prometheus, Source};
use crate::scenario::{Arrival, Mix, OPERATION_KEYS, PHASE_KEYS, Phase, Scenario, no_keys, typed};
use crate::server::{ADMIN, DataDirectory, Server, ServerInstance};
use crate::target::driver::SLICE_MS_THREADS;
use crate::target::driver::{Counts, Driver};
use crate::target::plan::{self, plan};

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

/// The driver of one scenario.
pub(crate) struct ReadsDriver {
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
    pub(crate) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
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
            let place = format!("operation `{}`", operation.name);
            typed::<OperationOptions>(operation.driver_keys.clone(), &place, OPERATION_KEYS)?;
            if operation.name != WRITE && !NAMES.contains(&operation.name.as_str()) {
                return Err(format!("{place}: there is no such question; there are {}", NAMES.join(", ")));
            }
        }
        for phase in &scenario.phases {
            check(phase).map_err(|what| format!("phase `{}`: {what}", phase.name))?;
        }
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
    for mix in &phase.mixes {
        no_keys(&mix.driver_keys, "its options", PHASE_KEYS)?;
    }
    Ok(())
}

impl Driver for ReadsDriver {
    fn classes(&self) -> Vec<String> {
        self.scenario.operations.iter().map(|operation| operation.name.clone()).collect()
    }

    fn has_thread_each(&self) -> bool {
        true
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Target> {
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
        let target = Target {
            address: instance.http.to_string(),
            product: Some(format!("tacho {}", env!("CARGO_PKG_VERSION"))),
            started_by_run: true,
            settings: [("durability".to_owned(), durability)].into(),
        };
        self.started = Some(Started { server, dashboard, instance, _data_directory: data_directory });
        Ok(target)
    }

    fn starts_server(&self) -> bool {
        true
    }

    /// A phase with one query can be sliced. Several queries would have their own results, and writes are on a
    /// schedule.
    fn slice_ms(&self, phase: &Phase) -> Option<u32> {
        (questions(phase).len() == 1 && !phase.mixes.iter().any(is_writing)).then_some(SLICE_MS_THREADS)
    }

    fn server_pid(&self) -> Option<u32> {
        Some(self.started.as_ref()?.server.sampled().pid())
    }

    fn several_processes(&self) -> std::result::Result<(), String> {
        Err("one process fills the server and asks it: leave out --workers".to_owned())
    }

    fn segments(&self, phase: &Phase, scenario: &Scenario) -> Vec<Segment> {
        let Some(one) = plan::segments(phase, scenario).into_iter().next() else { return Vec::new() };
        let named = |question: &String| Segment { name: format!("{}-{question}", phase.name), ..one.clone() };
        questions(phase).iter().map(named).collect()
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let source =
            |started: &Started| Box::new(Prometheus::tacho(&started.instance.http_url())) as Box<dyn Source>;
        self.started.iter().map(source).collect()
    }

    fn run(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Vec<SegmentOutcome>> {
        let started = self.started.as_ref().expect("BUG: the driver is not open");
        let classes = self.classes();
        let whole = plan(phase, &self.scenario, started.instance.http, classes.clone(), part);
        let mut outcomes: Vec<SegmentOutcome> = Vec::new();
        for (index, segment) in self.segments(phase, &self.scenario).into_iter().enumerate() {
            let choice = self.classes_of(phase, &questions(phase)[index]).map_err(Error::Options)?;
            let reads = Reads { dashboard: &started.dashboard, classes: &classes, choice };
            let plan = Plan { segments: vec![segment], ..whole.clone() };
            let outcome = threads::run(&reads, &plan, shared, |event| {
                on_event(match event {
                    Event::Started { at, .. } => Event::Started { segment: index, at },
                    other => other,
                });
            })?;
            outcomes.extend(outcome.segments);
            if outcomes.last().is_none_or(|outcome| outcome.ended >= Ended::Stopped) {
                break;
            }
        }
        Ok(outcomes)
    }

    fn verify(
        &mut self,
        phase: &Phase,
        _: (u32, u32),
        segments: &[SegmentOutcome],
        _: &Counts,
    ) -> Result<(Vec<Check>, Vec<String>)> {
        let started = self.started.as_ref().expect("BUG: the driver is not open");
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
        Ok((Vec::new(), findings))
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
            let segments = driver.segments(phase, &driver.scenario);
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
        let mut random = crate::dataset::Random::new(1);
        assert_eq!(choice.next(0, &mut random), Some(driver.scenario.class_of("one-1h")));
        assert_eq!(choice.next(1, &mut random), Some(write));
    }

    #[test]
    fn one_question_at_rest_is_compared_in_slices_and_all_else_by_whole_runs() {
        use crate::runner::slicing::{Slicing, slicing};
        let slice = |phase: usize, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load("reads", &sets).unwrap();
            slicing(&scenario, &scenario.phases[phase]).unwrap()
        };
        let one = ["phase.rest.operations=['one-1h']"];
        assert_eq!((slice(0, &one), slice(0, &[])), (Slicing::ByDefault(SLICE_MS_THREADS), Slicing::Never));
        assert_eq!(slice(1, &one), Slicing::Never, "what is read grows meanwhile");
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
