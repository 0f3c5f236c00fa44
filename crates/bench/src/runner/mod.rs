//! Runs scenarios: phase after phase on an engine, judged by gates, into one bundle.

pub(crate) mod asked;
mod book;
mod gates;
mod host;
mod hosted;
mod http;
mod ledger;
mod meter;
mod mqtt;
mod plan;
mod reads;
mod redis;
mod sql;
mod tcp;
pub(crate) mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;

use crate::engine::event::now_ms;
use crate::engine::{self, Ended, Event, SegmentOutcome, Shared};
use crate::error::{Error, Result};
use crate::lives::Lives;
use crate::open_files;
use crate::options::Context;
use crate::process::Sampled;
use crate::progress::Progress;
use crate::recorder::{Recorder, Window};
use crate::result::{Builder, Bundle, Check, Generator, RunResult, ScenarioAsRun, Target};
use crate::scenario::{Kind, OPERATION_KEYS, Phase, Scenario, TARGET_KEYS, typed};
use crate::telemetry::{Collector, Host, Process, Source};
use book::Book;
pub(crate) use hosted::Hosted;
use meter::{Meter, Metered};
use turns::{Player, Seat};

/// What the runner needs of a protocol. A driver is made from a scenario without looking at the world.
pub(crate) trait Driver {
    /// Names of the operation classes, by class number.
    fn classes(&self) -> Vec<String>;

    /// Looks at the server: what it is, and whether it is there. Called once before the first phase.
    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Target>;

    /// Process of the server if it runs on this machine and is known.
    fn server_pid(&self) -> Option<u32> {
        None
    }

    /// The processes of a server that the run kills and starts again.
    fn lives(&self) -> Option<Lives> {
        None
    }

    /// Whether several processes can share the load; an error says why not.
    fn several_processes(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Length of the slices that suit its loads when two runs take turns, milliseconds; `None` where they cannot.
    fn slice_ms(&self, _phase: &Phase) -> Option<u32> {
        None
    }

    /// Whether [`Self::open`] starts a server.
    fn starts_server(&self) -> bool {
        false
    }

    /// `[target]` for other processes that use the server which this one started.
    fn told(&self) -> toml::Table {
        toml::Table::new()
    }

    /// Connections of a phase.
    fn connections(&self, phase: &Phase) -> u32 {
        phase.connections()
    }

    /// Whether every connection has a thread of its own; otherwise a phase says how many there are.
    fn has_thread_each(&self) -> bool {
        false
    }

    /// Whether each second of a phase has figures to show; otherwise the driver says by [`Event::Note`] how far it is.
    fn has_figures_each_second(&self, _phase: &Phase) -> bool {
        true
    }

    /// The parts of a phase that have results of their own, as [`Self::run`] carries them out.
    fn segments(&self, phase: &Phase, scenario: &Scenario) -> Vec<engine::Segment> {
        plan::segments(phase, scenario)
    }

    /// Compares what the phases need with what this machine has. Called before anything is opened; an error names the
    /// limit and how to raise it.
    fn limits(&self, _phases: &[&Phase]) -> Result<()> {
        Ok(())
    }

    /// What of the server is read each second while a phase runs; its process and the machine are read anyway.
    fn sources(&self) -> Vec<Box<dyn Source>> {
        Vec::new()
    }

    /// Called before each phase, of several processes by the first alone; an error says what is missing and which command
    /// makes it.
    fn before(&mut self, _phase: &Phase) -> Result<()> {
        Ok(())
    }

    /// Carries out a phase.
    fn run(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Vec<SegmentOutcome>>;

    /// What this process did in the phase that is over, for comparison with what the server counted.
    fn did(&mut self, _segments: &[SegmentOutcome]) -> Counts {
        Counts::new()
    }

    /// Called after each phase in every process, with what all of them did: what was compared, and what it shows in sentences.
    /// What the server counted of all is for the first process.
    fn after(
        &mut self,
        _phase: &Phase,
        _part: (u32, u32),
        _segments: &[SegmentOutcome],
        _all_did: &Counts,
    ) -> Result<(Vec<Check>, Vec<String>)> {
        Ok((Vec::new(), Vec::new()))
    }

    /// Called instead when a phase was stopped: what is known already.
    fn stopped(&mut self) -> (Vec<Check>, Vec<String>) {
        (Vec::new(), Vec::new())
    }

    /// What the whole run shows, in sentences: of all processes together.
    fn conclusions(&self, _result: &RunResult) -> Vec<String> {
        Vec::new()
    }

    /// Called once at the end. An error says how a server that the run started did not end as it should.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The driver of a scenario. An error says what of the scenario it does not understand.
pub(crate) fn driver(scenario: &Scenario) -> std::result::Result<Box<dyn Driver>, String> {
    if !matches!(scenario.head.driver.as_str(), "mqtt" | "ledger") {
        no_keys(&scenario.target.own, "[target]", TARGET_KEYS)?;
    }
    match scenario.head.driver.as_str() {
        "mqtt" | "tcp" => no_keys_of_operations(scenario)?,
        "ledger" => no_keys(&scenario.dataset, "[dataset]", &[])?,
        _ => {}
    }
    match scenario.head.driver.as_str() {
        "redis" => Ok(Box::new(redis::RedisDriver::new(scenario)?)),
        "mqtt" => Ok(Box::new(mqtt::MqttDriver::new(scenario)?)),
        "sql" => Ok(Box::new(sql::SqlDriver::new(scenario)?)),
        "http" => Ok(Box::new(http::HttpDriver::new(scenario)?)),
        "host" => Ok(Box::new(host::HostDriver::new(scenario)?)),
        "tcp" => Ok(Box::new(tcp::TcpDriver::new(scenario)?)),
        "ledger" => Ok(Box::new(ledger::LedgerDriver::new(scenario)?)),
        "reads" => Ok(Box::new(reads::ReadsDriver::new(scenario)?)),
        other => Err(format!(
            "there is no driver `{other}`; there are mqtt, redis, sql, http, tcp, host, ledger and reads"
        )),
    }
}

/// Operations of some drivers have a name and no more.
fn no_keys_of_operations(scenario: &Scenario) -> std::result::Result<(), String> {
    scenario.operations.iter().try_for_each(|operation| {
        no_keys(&operation.own, &format!("operation `{}`", operation.name), OPERATION_KEYS)
    })
}

/// Names of the results that a phase has: several where its parts have results of their own.
pub(crate) fn results(scenario: &Scenario, phase: &str) -> std::result::Result<Vec<String>, String> {
    let driver = driver(scenario)?;
    let segments = scenario.phases.iter().filter(|known| known.name == phase);
    Ok(segments.flat_map(|phase| driver.segments(phase, scenario)).map(|segment| segment.name).collect())
}

/// A table of which the driver knows no key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

/// Refuses every key of a table; `more` are those that are known there, for suggestions.
fn no_keys(table: &toml::Table, place: &str, more: &[&str]) -> std::result::Result<(), String> {
    typed::<NoKeys>(table.clone(), place, more).map(|NoKeys {}| ())
}

/// How a scenario is to be run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of the phases to run; empty for all.
    pub phases: Vec<String>,
    /// Which part of the connections this process has, of how many.
    pub part: Option<(u32, u32)>,
    /// No progress.
    pub quiet: bool,
    /// Which of several runs it is. With it progress is shown on a terminal alone: whoever runs them says a line for each.
    pub label: Option<String>,
    /// Set when the run is to end, as by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// What was done, by name.
pub type Counts = BTreeMap<String, u64>;

/// Where the processes of a run wait for each other: what each brings is added up and given to all. `None` when the run is over:
/// it was stopped, or one of them has ended.
pub type Barrier<'a> = &'a mut dyn FnMut(Counts) -> Result<Option<Counts>>;

/// The barrier of a process that is alone.
pub fn alone(counts: Counts) -> Result<Option<Counts>> {
    Ok(Some(counts))
}

/// Runs a scenario. A run with a bad result is an invalid bundle, not an error.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    context: &Context,
    barrier: Barrier<'_>,
) -> Result<Bundle> {
    run_seated(scenario, options, context, barrier, None)
}

/// The same; with a seat its only phase takes turns with another run.
fn run_seated(
    scenario: &Scenario,
    options: &Options,
    context: &Context,
    barrier: Barrier<'_>,
    seat: Option<Seat>,
) -> Result<Bundle> {
    let wrong = |what: String| Error::Scenario { path: PathBuf::from(&scenario.head.name), what };
    let phases = chosen(scenario, &options.phases)?;
    let mut driver = driver(scenario).map_err(wrong)?;
    let part = options.part.unwrap_or((0, 1));
    let most = phases.iter().map(|phase| driver.connections(phase)).max().unwrap_or(0);
    // The other side is in this process and has as many.
    open_files::provide(if seat.is_some() { most.saturating_mul(2) } else { most }, part.1)?;
    driver.limits(&phases)?;
    let progress = progress(options, part);
    let target = driver.open(context, &progress)?;
    let server = match (driver.lives(), scenario.target.pid.or(driver.server_pid())) {
        // The first process looks at the server for all; the others may be on another host.
        _ if part.0 > 0 => None,
        (Some(lives), _) => Some(lives),
        (None, pid) => pid.map(Sampled::new).transpose()?.map(Lives::one),
    };
    let now = server.as_ref().and_then(Lives::now);
    if let Some(text) = now.and_then(|server| open_files::server_cap(&server, most)) {
        return Err(Error::Options(text));
    }
    let mut run = Run {
        book: Book::new(builder(scenario, context, target), driver.classes()),
        progress,
        server,
        began: Instant::now(),
        began_wall: SystemTime::now(),
        scenario,
        part,
        stop: Arc::clone(&options.stop),
        seat,
    };
    // All processes have looked at the server and none has asked it anything yet; seconds count from here in all of them.
    let met = barrier(Counts::new())?;
    run.begin();
    if met.is_none() {
        run.cut();
    }
    for phase in met.map(|_| phases).unwrap_or_default() {
        match run.phase(driver.as_mut(), phase, barrier) {
            Ok(true) => {}
            Ok(false) => break,
            // What the other processes have measured by then is worth keeping.
            Err(Error::Stopped) if part.1 > 1 => {
                run.book.interrupted(run.began.elapsed());
                break;
            }
            // A server that is dead says why better than the connection that missed it.
            Err(error) if run.book.is_empty() => return Err(driver.close().err().unwrap_or(error)),
            Err(error) => {
                run.book.fault(run.began.elapsed(), format!("phase {}: {error}", phase.name));
                break;
            }
        }
    }
    if let Err(error) = driver.close() {
        run.book.fault(run.began.elapsed(), error.to_string());
    }
    if part.1 > 1 {
        // What all of them show is looked for in the sum.
        return Ok(run.book.finish_part(run.began, run.began_wall, part.0 + 1));
    }
    let mut bundle = run.book.finish(run.began, run.began_wall);
    bundle.result.findings.splice(..0, driver.conclusions(&bundle.result));
    Ok(bundle)
}

/// Progress of the part of a run that a process has.
fn progress(options: &Options, part: (u32, u32)) -> Progress {
    let progress = match options.label {
        Some(_) if !options.quiet => Progress::passing(),
        _ => Progress::new(options.quiet),
    };
    let run = options.label.as_ref().map(|label| format!("{label}: "));
    // Its rates are those of its own part, and no other process shows its own.
    let process = (part.1 > 1).then(|| format!("process {} of {}: ", part.0 + 1, part.1));
    progress.labelled(run.into_iter().chain(process).collect())
}

/// Adds what the run of several processes shows, once their results are one.
pub(crate) fn conclude(scenario: &Scenario, bundle: &mut Bundle) -> std::result::Result<(), String> {
    let conclusions = driver(scenario)?.conclusions(&bundle.result);
    bundle.result.findings.splice(..0, conclusions);
    Ok(())
}

fn chosen<'a>(scenario: &'a Scenario, names: &[String]) -> Result<Vec<&'a Phase>> {
    if names.is_empty() {
        return Ok(scenario.phases.iter().collect());
    }
    let find = |name: &String| {
        scenario.phases.iter().find(|phase| phase.name == *name).ok_or_else(|| {
            let known: Vec<&str> = scenario.phases.iter().map(|phase| phase.name.as_str()).collect();
            Error::Options(format!(
                "there is no phase `{name}` in {}, there are {}",
                scenario.head.name,
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

fn builder(scenario: &Scenario, context: &Context, target: Target) -> Builder {
    let head = &scenario.head;
    let as_run = ScenarioAsRun {
        name: head.name.clone(),
        about: head.about.clone(),
        driver: head.driver.clone(),
        article: head.article.clone(),
        configuration: asked::configuration(scenario),
    };
    let mut builder = Builder::new(as_run, head.seed, SystemTime::now());
    builder.command(&asked::command_line(&context.command_line), context.commit.as_deref()).target(target);
    builder
}

struct Run<'a> {
    book: Book,
    progress: Progress,
    server: Option<Lives>,
    began: Instant,
    began_wall: SystemTime,
    scenario: &'a Scenario,
    part: (u32, u32),
    stop: Arc<AtomicBool>,
    seat: Option<Seat>,
}

impl Run<'_> {
    fn begin(&mut self) {
        (self.began, self.began_wall) = (Instant::now(), SystemTime::now());
        self.book.began(self.began_wall);
    }

    /// Runs one phase. `Ok(false)` when the run is over with it.
    fn phase(&mut self, driver: &mut dyn Driver, phase: &Phase, barrier: Barrier<'_>) -> Result<bool> {
        if let Some(seat) = self.seat.take() {
            return self.phase_in_turns(driver, phase, seat);
        }
        if self.part.0 == 0 {
            driver.before(phase)?;
        }
        if barrier(Counts::new())?.is_none() {
            self.cut();
            return Ok(false);
        }
        let plan = driver.segments(phase, self.scenario);
        let shared = Shared::default();
        let mut meter = Meter::new(self.server.clone(), &plan, phase.connections());
        let connections = self.share(driver.connections(phase));
        let (book, progress, stop) = (&mut self.book, &self.progress, &self.stop);
        let began = self.began;
        let has_figures = driver.has_figures_each_second(phase);
        let mut collector = Collector::start(sources(driver, self.server.as_ref(), self.part));
        let mut first_start = began;
        let outcome = driver.run(phase, self.part, &shared, &mut |event| {
            if let Event::Started { segment: 0, at } = &event {
                first_start = *at;
            }
            collector.on_event(&event);
            if stop.load(Ordering::Relaxed) {
                shared.stop();
            }
            meter.on_event(&event, &shared);
            if has_figures || !matches!(event, Event::Second(_)) {
                show(&event, &plan, connections, phase, progress, meter.segment());
            }
            if let Event::Second(second) = &event {
                let name = &plan[meter.segment()].name;
                book.second(
                    name,
                    meter.segment_began().saturating_duration_since(began),
                    second,
                    meter.rss(),
                );
            }
        });
        let mut collected = collector.finish();
        if self.part.1 > 1 {
            // The target worked for all processes, and this one knows its own operations.
            collected.series.remove("target.cpu_us_per_operation");
        }
        book.collected(first_start.saturating_duration_since(began), collected);
        let segments = outcome?;
        let meters = meter.finish(&shared);
        self.book_segments(driver, phase, &plan, &segments, &meters, None);
        let all_did = barrier(driver.did(&segments))?;
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let (checks, findings) = match (ended, all_did) {
            (Ended::Stopped, _) => driver.stopped(),
            (_, Some(all_did)) => driver.after(phase, self.part, &segments, &all_did)?,
            // What the others did is not known.
            (_, None) => {
                self.cut();
                driver.stopped()
            }
        };
        self.book.verified(checks, findings);
        Ok(ended < Ended::Stopped)
    }

    /// The others do not go on. Who has failed says so itself.
    fn cut(&mut self) {
        if self.stop.load(Ordering::Relaxed) {
            self.book.interrupted(self.began.elapsed());
        }
    }

    /// What this process has of the connections.
    fn share(&self, all: u32) -> u32 {
        all / self.part.1 + u32::from(self.part.0 < all % self.part.1)
    }

    fn book_segments(
        &mut self,
        driver: &dyn Driver,
        phase: &Phase,
        plan: &[engine::Segment],
        segments: &[SegmentOutcome],
        meters: &[Metered],
        ended: Option<Duration>,
    ) {
        let connections = self.share(driver.connections(phase));
        let threads = if driver.has_thread_each() { connections.max(1) } else { phase.threads };
        for (index, outcome) in segments.iter().enumerate() {
            let started = meters.get(index).map_or(self.began, |metered| metered.began);
            let starts = started.saturating_duration_since(self.began);
            self.book.segment(&book::Finished {
                segment: &plan[index],
                kind: phase.kind,
                threads,
                connections,
                parts: self.part.1,
                starts,
                ends: ended.unwrap_or(starts + outcome.measured + plan[index].warmup),
                outcome,
                metered: meters.get(index),
                gates: &self.scenario.gates,
                loads: &plan[index].loads,
            });
        }
    }

    /// The same in turns with another run. Nothing is read each second: whoever reads takes a processor from one of the two.
    fn phase_in_turns(&mut self, driver: &mut dyn Driver, phase: &Phase, seat: Seat) -> Result<bool> {
        driver.before(phase)?;
        let plan = driver.segments(phase, self.scenario);
        let shares_target = seat.shares_target && !driver.starts_server();
        let player = Arc::new(Player::new(seat, self.server.clone()));
        let led: Arc<dyn engine::Turns> = Arc::clone(&player) as _;
        let shared = Shared::in_turns(led);
        let stop = &self.stop;
        let phase_began = Instant::now();
        let mut segments = driver.run(phase, self.part, &shared, &mut |_| {
            if stop.load(Ordering::Relaxed) {
                shared.stop();
            }
        })?;
        let ended = self.began.elapsed();
        for segment in &mut segments {
            segment.first_loss_s = player.first_loss_s(phase_began);
        }
        let meters = [player.metered(phase_began)];
        self.book_segments(driver, phase, &plan, &segments, &meters, Some(ended));
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let (checks, findings) = match ended {
            Ended::Stopped => driver.stopped(),
            _ if shares_target => {
                let what =
                    "Both sides used one server; what it counted is that of both and was not compared.";
                (Vec::new(), vec![what.to_owned()])
            }
            _ => {
                let did = driver.did(&segments);
                driver.after(phase, self.part, &segments, &did)?
            }
        };
        self.book.verified(checks, findings);
        Ok(ended < Ended::Stopped)
    }
}

/// What is read each second while a phase runs. With several processes the first reads what they all share.
fn sources(driver: &dyn Driver, server: Option<&Lives>, part: (u32, u32)) -> Vec<Box<dyn Source>> {
    let name = if part.1 == 1 { "generator".to_owned() } else { format!("generator{}", part.0 + 1) };
    // This process is there.
    let own = Process::new(std::process::id(), &name).ok();
    let mut sources: Vec<Box<dyn Source>> =
        own.into_iter().map(|own| Box::new(own) as Box<dyn Source>).collect();
    if part.0 == 0 {
        let target = server.map(|server| Box::new(Process::of(server.clone(), "target")) as Box<dyn Source>);
        sources.extend(target);
        sources.push(Box::new(Host));
        sources.extend(driver.sources());
    }
    sources
}

fn show(
    event: &Event,
    plan: &[engine::Segment],
    connections: u32,
    phase: &Phase,
    progress: &Progress,
    segment: usize,
) {
    match event {
        Event::Connecting(opened) => {
            progress.fleeting(|| format!("{}: {opened} of {connections} connections open", phase.name));
        }
        Event::Started { segment, .. } => {
            progress
                .step(format!("{}: {connections} connections open, the load begins", plan[*segment].name));
        }
        Event::Second(second) => {
            let segment = &plan[segment];
            progress.second(second, segment.warmup.saturating_add(segment.duration));
        }
        Event::Note(text) => progress.step(text.clone()),
        Event::Tick => {}
    }
}

/// Whether the figures of a phase of this kind are the result.
fn is_measured(kind: Kind) -> bool {
    kind == Kind::Run
}

/// The part of a process that has nothing to do in a phase.
fn nothing(classes: usize, on_event: &mut dyn FnMut(Event)) -> SegmentOutcome {
    on_event(Event::Started { segment: 0, at: Instant::now() });
    SegmentOutcome {
        recorder: Recorder::new(Window::default(), classes),
        started_ms: now_ms(),
        measured: Duration::ZERO,
        ended: Ended::Finished,
        first_loss_s: None,
    }
}

/// What a process says of itself.
fn generator(threads: u32, cpu_s: Option<f64>) -> Generator {
    Generator { threads, cpu_s }
}
