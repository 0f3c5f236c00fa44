//! Runs the phases of a scenario one after the other and writes their result into one bundle.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use load::engine::{self, Ended, Event, SegmentOutcome, Shared};
use load::open_files;
use load::process::SampledProcess;
use load::progress::Progress;
use load::result::{Builder, Bundle, ScenarioAsRun, Target};
use load::sampling::Collector;
use load::scenario::{Phase, Scenario};
use load::server_process::ServerProcess;
use load::{Error, Result};
use targets::Context;
use targets::command_line;
use targets::driver::{Driver, PhaseCapabilities, PhaseEnd, PhaseRun, Verdict};
use targets::{Counts, driver_of};

use super::meter::{Meter, Metered};
use super::observed::{show, sources};
use super::result_collector::{FinishedSegment, ResultCollector};
use super::side::{Side, SideRunner};

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The names of the phases to run; empty for all.
    pub phases: Vec<String>,
    /// The index of this process's part of the connections, and the number of parts.
    pub part: Option<(u32, u32)>,
    /// Shows no progress.
    pub quiet: bool,
    /// The label of the run in a series. With a label, only terminals show progress, because the series writes a line
    /// for each run.
    pub label: Option<String>,
    /// A flag that ends the run, such as after Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// Synchronises the processes of a run. It adds up the counts of all processes and returns the sum to each. It returns
/// `None` when the run is over: it was stopped, or a process has ended.
pub type Barrier<'a> = &'a mut dyn FnMut(Counts) -> Result<Option<Counts>>;

/// The barrier of a single process.
pub fn alone(counts: Counts) -> Result<Option<Counts>> {
    Ok(Some(counts))
}

/// Runs a scenario. A run with a bad result gives an invalid bundle, not an error.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    context: &Context,
    barrier: Barrier<'_>,
) -> Result<Bundle> {
    run_side(scenario, options, context, barrier, None)
}

/// Runs a scenario. With a side, its only phase alternates with another run.
pub(super) fn run_side(
    scenario: &Scenario,
    options: &Options,
    context: &Context,
    barrier: Barrier<'_>,
    side: Option<Side>,
) -> Result<Bundle> {
    let wrong = |what: String| Error::Scenario { path: PathBuf::from(&scenario.head.name), what };
    let phases = chosen(scenario, &options.phases)?;
    let mut driver = driver_of(scenario).map_err(wrong)?;
    let part = options.part.unwrap_or((0, 1));
    let most = phases.iter().map(|phase| driver.phase_capabilities(phase).connections).max().unwrap_or(0);
    // The other side runs in this process and has as many connections.
    open_files::provide(if side.is_some() { most.saturating_mul(2) } else { most }, part.1)?;
    driver.limits(&phases)?;
    let progress = progress(options, part);
    let opened = driver.open(context, &progress)?;
    let server = match (opened.server_process, scenario.target.pid.or(opened.server_pid)) {
        // The first process samples the server for all. The other processes may be on another host.
        _ if part.0 > 0 => None,
        (Some(server_process), _) => Some(server_process),
        (None, pid) => pid.map(SampledProcess::new).transpose()?.map(ServerProcess::single),
    };
    let current = server.as_ref().and_then(ServerProcess::current);
    if let Some(text) = current.and_then(|server| open_files::server_cap(&server, most)) {
        return Err(Error::Options(text));
    }
    let mut run = Run {
        results: ResultCollector::new(
            bundle_builder(scenario, context, opened.target),
            driver.capabilities().classes,
        ),
        progress,
        server,
        began: Instant::now(),
        began_wall: SystemTime::now(),
        scenario,
        part,
        stop: Arc::clone(&options.stop),
        side,
    };
    // At this point every process has connected to the server, and none has sent a request. Seconds count from here in
    // all processes.
    let met = barrier(Counts::new())?;
    run.begin();
    if met.is_none() {
        run.mark_if_stopped();
    }
    for phase in met.map(|_| phases).unwrap_or_default() {
        match run.phase(driver.as_mut(), phase, barrier) {
            Ok(true) => {}
            Ok(false) => break,
            // The measurements of the other processes are worth keeping.
            Err(Error::Stopped) if part.1 > 1 => {
                run.results.interrupted(run.began.elapsed());
                break;
            }
            // The error of a dead server explains more than that of a lost connection.
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
        // Findings that need the sum of all processes follow after the merge.
        return Ok(run.results.finish_part(run.began, run.began_wall, part.0 + 1));
    }
    let mut bundle = run.results.finish(run.began, run.began_wall);
    bundle.result.findings.splice(..0, driver.conclusions(&bundle.result));
    Ok(bundle)
}

/// The progress display of this process.
fn progress(options: &Options, part: (u32, u32)) -> Progress {
    let progress = match options.label {
        Some(_) if !options.quiet => Progress::terminal_only(),
        _ => Progress::new(options.quiet),
    };
    let run = options.label.as_ref().map(|label| format!("{label}: "));
    // The rates are those of this process. No other process shows progress.
    let process = (part.1 > 1).then(|| format!("process {} of {}: ", part.0 + 1, part.1));
    progress.labelled(run.into_iter().chain(process).collect())
}

/// Adds the findings of a run of several processes to its merged bundle.
pub(crate) fn conclude(scenario: &Scenario, bundle: &mut Bundle) -> std::result::Result<(), String> {
    let conclusions = driver_of(scenario)?.conclusions(&bundle.result);
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

    /// Runs one phase. Returns false if the run is over.
    fn phase(&mut self, driver: &mut dyn Driver, phase: &Phase, barrier: Barrier<'_>) -> Result<bool> {
        if let Some(side) = self.side.take() {
            return self.phase_in_slices(driver, phase, side);
        }
        if self.part.0 == 0 {
            driver.prepare(phase)?;
        }
        if barrier(Counts::new())?.is_none() {
            self.mark_if_stopped();
            return Ok(false);
        }
        let capabilities = driver.phase_capabilities(phase);
        let plan = &capabilities.segments[..];
        let shared = Shared::default();
        let mut meter = Meter::new(self.server.clone(), plan, phase.connections());
        let connections = self.share(capabilities.connections);
        let (results, progress, stop) = (&mut self.results, &self.progress, &self.stop);
        let began = self.began;
        let mut collector = Collector::start(sources(driver, self.server.as_ref(), self.part));
        let mut first_start = began;
        let part = self.part;
        let mut on_event = |event| {
            if let Event::Started { segment: 0, at } = &event {
                first_start = *at;
            }
            collector.on_event(&event);
            if stop.load(Ordering::Relaxed) {
                shared.stop();
            }
            meter.on_event(&event, &shared);
            if capabilities.figures_each_second || !matches!(event, Event::Second(_)) {
                show(&event, plan, connections, phase, progress, meter.segment());
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
        };
        let outcome = driver.run(PhaseRun { phase, part, shared: &shared, on_event: &mut on_event });
        let mut collected = collector.finish();
        if self.part.1 > 1 {
            // The target worked for all processes, and this process knows only its own operations.
            collected.series.remove("target.cpu_us_per_operation");
        }
        results.collected(first_start.saturating_duration_since(began), collected);
        let segments = outcome?;
        let meters = meter.finish(&shared);
        self.collect_segments(driver, phase, &capabilities, &segments, &meters, None);
        let all_counts = barrier(driver.local_counts(&segments))?;
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let verdict = match (ended, all_counts) {
            (Ended::Stopped, _) => driver.stopped(),
            (_, Some(all_counts)) => self.verify(driver, phase, &segments, &all_counts)?,
            // The counts of the other processes are unknown.
            (_, None) => {
                self.mark_if_stopped();
                driver.stopped()
            }
        };
        self.results.verified(verdict);
        Ok(ended < Ended::Stopped)
    }

    /// Compares the results of a phase with the server, if it is this process that compares.
    fn verify(
        &self,
        driver: &mut dyn Driver,
        phase: &Phase,
        segments: &[SegmentOutcome],
        all_counts: &Counts,
    ) -> Result<Verdict> {
        if self.part.0 > 0 && !driver.capabilities().verifies_parts {
            return Ok(Verdict::default());
        }
        driver.verify(&PhaseEnd { phase, part: self.part, segments, all_counts })
    }

    /// Marks the run as interrupted if it was stopped. If another process has ended, that process reports the reason.
    fn mark_if_stopped(&mut self) {
        if self.stop.load(Ordering::Relaxed) {
            self.results.interrupted(self.began.elapsed());
        }
    }

    /// The number of this process's connections.
    fn share(&self, all: u32) -> u32 {
        all / self.part.1 + u32::from(self.part.0 < all % self.part.1)
    }

    fn collect_segments(
        &mut self,
        driver: &dyn Driver,
        phase: &Phase,
        capabilities: &PhaseCapabilities,
        segments: &[SegmentOutcome],
        meters: &[Metered],
        ended: Option<Duration>,
    ) {
        let plan = &capabilities.segments;
        let connections = self.share(capabilities.connections);
        let threads = match driver.capabilities().thread_each {
            true => connections.max(1),
            false => phase.threads,
        };
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

    /// Runs one phase in slices, alternating with another run. It samples nothing each second, because the sampler
    /// would take processor time from one of the sides.
    fn phase_in_slices(&mut self, driver: &mut dyn Driver, phase: &Phase, side: Side) -> Result<bool> {
        driver.prepare(phase)?;
        let capabilities = driver.phase_capabilities(phase);
        let shares_target = side.shares_target && !driver.capabilities().starts_server;
        let runner = Arc::new(SideRunner::new(side, self.server.clone()));
        let slices: Arc<dyn engine::SliceSource> = Arc::clone(&runner) as _;
        let shared = Shared::in_slices(slices);
        let stop = &self.stop;
        let phase_began = Instant::now();
        let mut on_event = |_| {
            if stop.load(Ordering::Relaxed) {
                shared.stop();
            }
        };
        let run = PhaseRun { phase, part: self.part, shared: &shared, on_event: &mut on_event };
        let mut segments = driver.run(run)?;
        let ended = self.began.elapsed();
        for segment in &mut segments {
            segment.first_loss_s = runner.first_loss_s(phase_began);
        }
        let meters = [runner.metered(phase_began)];
        self.collect_segments(driver, phase, &capabilities, &segments, &meters, Some(ended));
        let ended = segments.last().map_or(Ended::Stopped, |segment| segment.ended);
        let verdict = match ended {
            Ended::Stopped => driver.stopped(),
            _ if shares_target => {
                let what =
                    "Both sides used one server; what it counted is that of both and was not compared.";
                Verdict { findings: vec![what.to_owned()], ..Verdict::default() }
            }
            _ => {
                let local_counts = driver.local_counts(&segments);
                self.verify(driver, phase, &segments, &local_counts)?
            }
        };
        self.results.verified(verdict);
        Ok(ended < Ended::Stopped)
    }
}
