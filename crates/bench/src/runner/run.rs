//! Runs the phases of a scenario one after the other and writes their result into one bundle.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::command_line;
use super::driver::{Counts, Driver};
use super::drivers::driver;
use super::meter::{Meter, Metered};
use super::result_collector::{FinishedSegment, ResultCollector};
use super::side::{Side, SideRunner};
use crate::engine::{self, Ended, Event, SegmentOutcome, Shared};
use crate::error::{Error, Result};
use crate::open_files;
use crate::options::Context;
use crate::process::SampledProcess;
use crate::progress::Progress;
use crate::result::{Builder, Bundle, ScenarioAsRun, Target};
use crate::sampling::{Collector, Host, Process, Source};
use crate::scenario::{Phase, Scenario};
use crate::server_process::ServerProcess;

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
    run_side(scenario, options, context, barrier, None)
}

/// The same; with a seat its only phase takes turns with another run.
pub(super) fn run_side(
    scenario: &Scenario,
    options: &Options,
    context: &Context,
    barrier: Barrier<'_>,
    side: Option<Side>,
) -> Result<Bundle> {
    let wrong = |what: String| Error::Scenario { path: PathBuf::from(&scenario.head.name), what };
    let phases = chosen(scenario, &options.phases)?;
    let mut driver = driver(scenario).map_err(wrong)?;
    let part = options.part.unwrap_or((0, 1));
    let most = phases.iter().map(|phase| driver.connections(phase)).max().unwrap_or(0);
    // The other side is in this process and has as many.
    open_files::provide(if side.is_some() { most.saturating_mul(2) } else { most }, part.1)?;
    driver.limits(&phases)?;
    let progress = progress(options, part);
    let target = driver.open(context, &progress)?;
    let server = match (driver.server_process(), scenario.target.pid.or(driver.server_pid())) {
        // The first process looks at the server for all; the others may be on another host.
        _ if part.0 > 0 => None,
        (Some(server_process), _) => Some(server_process),
        (None, pid) => pid.map(SampledProcess::new).transpose()?.map(ServerProcess::single),
    };
    let current = server.as_ref().and_then(ServerProcess::current);
    if let Some(text) = current.and_then(|server| open_files::server_cap(&server, most)) {
        return Err(Error::Options(text));
    }
    let mut run = Run {
        results: ResultCollector::new(bundle_builder(scenario, context, target), driver.classes()),
        progress,
        server,
        began: Instant::now(),
        began_wall: SystemTime::now(),
        scenario,
        part,
        stop: Arc::clone(&options.stop),
        side,
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
                run.results.interrupted(run.began.elapsed());
                break;
            }
            // A server that is dead says why better than the connection that missed it.
            Err(error) if run.results.is_empty() => return Err(driver.close().err().unwrap_or(error)),
            Err(error) => {
                run.results.fault(run.began.elapsed(), format!("phase {}: {error}", phase.name));
                break;
            }
        }
    }
    if let Err(error) = driver.close() {
        run.results.fault(run.began.elapsed(), error.to_string());
    }
    if part.1 > 1 {
        // What all of them show is looked for in the sum.
        return Ok(run.results.finish_part(run.began, run.began_wall, part.0 + 1));
    }
    let mut bundle = run.results.finish(run.began, run.began_wall);
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

fn bundle_builder(scenario: &Scenario, context: &Context, target: Target) -> Builder {
    let head = &scenario.head;
    let as_run = ScenarioAsRun {
        name: head.name.clone(),
        about: head.about.clone(),
        driver: head.driver.clone(),
        article: head.article.clone(),
        configuration: command_line::configuration(scenario),
    };
    let mut bundle_builder = Builder::new(as_run, head.seed, SystemTime::now());
    bundle_builder
        .command(&command_line::command_line(&context.command_line), context.commit.as_deref())
        .target(target);
    bundle_builder
}

struct Run<'a> {
    results: ResultCollector,
    progress: Progress,
    server: Option<ServerProcess>,
    began: Instant,
    began_wall: SystemTime,
    scenario: &'a Scenario,
    part: (u32, u32),
    stop: Arc<AtomicBool>,
    side: Option<Side>,
}

impl Run<'_> {
    fn begin(&mut self) {
        (self.began, self.began_wall) = (Instant::now(), SystemTime::now());
        self.results.began(self.began_wall);
    }

    /// Runs one phase. `Ok(false)` when the run is over with it.
    fn phase(&mut self, driver: &mut dyn Driver, phase: &Phase, barrier: Barrier<'_>) -> Result<bool> {
        if let Some(side) = self.side.take() {
            return self.phase_in_slices(driver, phase, side);
        }
        if self.part.0 == 0 {
            driver.prepare(phase)?;
        }
        if barrier(Counts::new())?.is_none() {
            self.cut();
            return Ok(false);
        }
        let plan = driver.segments(phase, self.scenario);
        let shared = Shared::default();
        let mut meter = Meter::new(self.server.clone(), &plan, phase.connections());
        let connections = self.share(driver.connections(phase));
        let (results, progress, stop) = (&mut self.results, &self.progress, &self.stop);
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
                results.second(
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
        results.collected(first_start.saturating_duration_since(began), collected);
        let segments = outcome?;
        let meters = meter.finish(&shared);
        self.collect_segments(driver, phase, &plan, &segments, &meters, None);
        let all_counts = barrier(driver.local_counts(&segments))?;
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let (checks, findings) = match (ended, all_counts) {
            (Ended::Stopped, _) => driver.stopped(),
            (_, Some(all_counts)) => driver.verify(phase, self.part, &segments, &all_counts)?,
            // What the others did is not known.
            (_, None) => {
                self.cut();
                driver.stopped()
            }
        };
        self.results.verified(checks, findings);
        Ok(ended < Ended::Stopped)
    }

    /// The others do not go on. Who has failed says so itself.
    fn cut(&mut self) {
        if self.stop.load(Ordering::Relaxed) {
            self.results.interrupted(self.began.elapsed());
        }
    }

    /// What this process has of the connections.
    fn share(&self, all: u32) -> u32 {
        all / self.part.1 + u32::from(self.part.0 < all % self.part.1)
    }

    fn collect_segments(
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
            self.results.segment(&FinishedSegment {
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
    fn phase_in_slices(&mut self, driver: &mut dyn Driver, phase: &Phase, side: Side) -> Result<bool> {
        driver.prepare(phase)?;
        let plan = driver.segments(phase, self.scenario);
        let shares_target = side.shares_target && !driver.starts_server();
        let runner = Arc::new(SideRunner::new(side, self.server.clone()));
        let slices: Arc<dyn engine::SliceSource> = Arc::clone(&runner) as _;
        let shared = Shared::in_slices(slices);
        let stop = &self.stop;
        let phase_began = Instant::now();
        let mut segments = driver.run(phase, self.part, &shared, &mut |_| {
            if stop.load(Ordering::Relaxed) {
                shared.stop();
            }
        })?;
        let ended = self.began.elapsed();
        for segment in &mut segments {
            segment.first_loss_s = runner.first_loss_s(phase_began);
        }
        let meters = [runner.metered(phase_began)];
        self.collect_segments(driver, phase, &plan, &segments, &meters, Some(ended));
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let (checks, findings) = match ended {
            Ended::Stopped => driver.stopped(),
            _ if shares_target => {
                let what =
                    "Both sides used one server; what it counted is that of both and was not compared.";
                (Vec::new(), vec![what.to_owned()])
            }
            _ => {
                let local_counts = driver.local_counts(&segments);
                driver.verify(phase, self.part, &segments, &local_counts)?
            }
        };
        self.results.verified(checks, findings);
        Ok(ended < Ended::Stopped)
    }
}

/// What is read each second while a phase runs. With several processes the first reads what they all share.
fn sources(driver: &dyn Driver, server: Option<&ServerProcess>, part: (u32, u32)) -> Vec<Box<dyn Source>> {
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
