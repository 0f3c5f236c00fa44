//! Scenarios of driver `host`: compute kernels on this machine, and its disk through fio.
//!
//! `[dataset]`: `directory` (of the test files) and `disk_gib` (size of the disk, for the quota). Operations: either
//! `kernel = "..."` or the job of fio (`rw`, `block`, `depth`, ...).

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use load::engine::{Ended, Event, Load, SegmentOutcome, threads};
use load::progress::{Progress, position};
use load::protocol::OperationChoice;
use load::recorder::{Recorder, Second, Window};
use load::result::Target;
use load::scenario::{Operation, Phase, Scenario, typed};
use load::{Error, Result};
use serde::Deserialize;

use super::fio::{self, Job};
use super::{Host, Kernel};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS, TargetKind,
    Verdict, empty_outcome,
};
use crate::plan::plan;

/// Slice length for kernels that sync a file, milliseconds. A slow disk was seen to take 8 ms per sync. One sync more
/// or less then changes the figure of a slice by less than a percent.
const SLICE_MS_DISK: u32 = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DatasetOptions {
    directory: PathBuf,
    disk_gib: Option<f64>,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        Self { directory: PathBuf::from("."), disk_gib: None }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelOptions {
    kernel: Kernel,
}

#[derive(Debug, Clone, PartialEq)]
enum Workload {
    Kernel(Kernel),
    Fio(Job),
}

impl Workload {
    fn of(operation: &Operation) -> std::result::Result<Self, String> {
        if operation.driver_keys.contains_key("kernel") {
            return Ok(Self::Kernel(operation.options::<KernelOptions>()?.kernel));
        }
        let job: Job = operation.options()?;
        job.check().map_err(|what| format!("{}: {what}", operation.place()))?;
        Ok(Self::Fio(job))
    }
}

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "host",
    new: |scenario| Ok(Box::new(HostDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct HostDriver {
    scenario: Scenario,
    dataset: DatasetOptions,
    works: Vec<Workload>,
    findings: Vec<String>,
}

impl HostDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let dataset: DatasetOptions = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let works =
            scenario.operations.iter().map(Workload::of).collect::<std::result::Result<Vec<_>, _>>()?;
        let driver = Self { scenario: scenario.clone(), dataset, works, findings: Vec::new() };
        scenario.phases.iter().try_for_each(|phase| driver.check(phase))?;
        Ok(driver)
    }

    fn check(&self, phase: &Phase) -> std::result::Result<(), String> {
        let place = phase.place();
        let jobs = self.jobs(phase);
        let classes = phase.mixes.iter().map(|mix| mix.operations.len()).sum::<usize>();
        if !jobs.is_empty() && (jobs.len() != 1 || classes != 1) {
            return Err(format!("{place}: a job of fio has a phase of its own: operations = [\"one\"]"));
        }
        phase.mixes.iter().try_for_each(|mix| mix.no_options(&place))
    }

    fn jobs(&self, phase: &Phase) -> Vec<(u16, &Job)> {
        let names = phase.mixes.iter().flat_map(|mix| &mix.operations);
        names
            .filter_map(|name| match self.work(name) {
                Workload::Fio(job) => Some((self.scenario.class_of(name), job)),
                Workload::Kernel(_) => None,
            })
            .collect()
    }

    fn work(&self, operation: &str) -> &Workload {
        &self.works[usize::from(self.scenario.class_of(operation))]
    }

    fn fio(&mut self, run: PhaseRun<'_>) -> Result<SegmentOutcome> {
        let PhaseRun { phase, shared, on_event, .. } = run;
        let (class, job) = match self.jobs(phase)[..] {
            [(class, job)] => (class, job.clone()),
            _ => return Err(Error::Options("BUG: a phase of fio has one job".to_owned())),
        };
        let name = self.scenario.operations[usize::from(class)].name.clone();
        let at = Instant::now();
        let started_ms = load::engine::event::now_ms();
        on_event(Event::Started { segment: 0, at });
        let classes = self.works.len();
        let mut second = 0;
        let measured = fio::run(&job, &self.dataset.directory, phase.duration, shared, &mut || {
            on_event(Event::Tick);
            while at.elapsed().as_secs() > second {
                on_event(Event::Second(Box::new(Second::new(second, classes))));
                second += 1;
                on_event(Event::Note(how_far(second, &name, &job)));
            }
        })?;
        self.findings.extend(measured.diagnose(&name, &job, self.dataset.disk_gib));
        let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: u64::MAX }, classes);
        measured.record(class, &mut recorder);
        // fio does not report the time of each operation, so all of them are in one second.
        on_event(Event::Second(Box::new(recorder.take_second(second))));
        Ok(SegmentOutcome {
            recorder,
            started_ms,
            measured: measured.took,
            ended: Ended::Finished,
            first_loss_s: None,
        })
    }

    fn kernels(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let choice = OperationChoice::new(&self.scenario.groups(phase)).map_err(Error::Options)?;
        let kernels = self.works.iter().map(|work| match work {
            Workload::Kernel(kernel) => *kernel,
            // Phases of fio do not get here.
            Workload::Fio(_) => Kernel::Syscall,
        });
        let host = Host::new(kernels.collect(), choice, &self.dataset.directory);
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let plan = plan(phase, &self.scenario, nowhere, part);
        let segments = threads::run(&host, &plan, shared, on_event)?.segments;
        // A finding covers all threads, and this process knows only its own.
        for segment in segments.iter().filter(|_| part.1 == 1) {
            for (index, class) in segment.recorder.classes().iter().enumerate() {
                if let Workload::Kernel(kernel) = self.works[index]
                    && class.counts.completed_within_window > 0
                {
                    let per_s = class.counts.completed_within_window as f64 / segment.measured.as_secs_f64();
                    let name = &self.scenario.operations[index].name;
                    self.findings.push(kernel.sentence(name, per_s, phase.connections()));
                }
            }
        }
        Ok(segments)
    }
}

/// The progress text while fio runs. fio itself reports nothing until it ends.
fn how_far(second: u64, name: &str, job: &Job) -> String {
    format!("{}  fio carries out {name}: {}", position(second, Duration::MAX), job.in_words())
}

impl Driver for HostDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_threads(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let syncs = phase
            .mixes
            .iter()
            .flat_map(|mix| &mix.operations)
            .any(|name| self.work(name) == &Workload::Kernel(Kernel::Fsync));
        let slice_ms = if syncs { SLICE_MS_DISK } else { SLICE_MS_THREADS };
        let mut capabilities = PhaseCapabilities::new(phase, &self.scenario, Some(slice_ms));
        if let [(_, job)] = self.jobs(phase)[..] {
            // fio reports its figures at the end.
            (capabilities.slice_ms, capabilities.figures_each_second) = (None, false);
            let window = fio::in_flight(&job.engine, job.depth.into(), job.direct) as usize;
            for segment in &mut capabilities.segments {
                segment.loads = vec![Load::Closed { window, pause: Duration::ZERO }];
            }
        }
        capabilities
    }

    fn open(&mut self, _: &Context, _: &Progress) -> Result<Opened> {
        let mut product = None;
        if self.works.iter().any(|work| matches!(work, Workload::Fio(_))) {
            product = Some(fio::version()?);
        }
        let directory = &self.dataset.directory;
        if !directory.is_dir() {
            return Err(Error::Options(format!(
                "{} is not a directory; name one on the disk to measure: --set dataset.directory=DIR",
                directory.display()
            )));
        }
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let settings =
            model.map(|(_, model)| ("processor".to_owned(), model.to_owned())).into_iter().collect();
        let target = Target { address: "this machine".to_owned(), product, settings, ..Target::default() };
        Ok(Opened { target, ..Opened::default() })
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        if self.jobs(run.phase).is_empty() {
            return self.kernels(run);
        }
        // One file allows one fio.
        if run.part.0 > 0 {
            return Ok(vec![empty_outcome(self.works.len(), run.on_event)]);
        }
        Ok(vec![self.fio(run)?])
    }

    fn verify(&mut self, _: &PhaseEnd<'_>) -> Result<Verdict> {
        Ok(Verdict { findings: std::mem::take(&mut self.findings), ..Verdict::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_fio_have_no_seconds_to_show_and_durable_writes_have_long_slices() {
        let scenario = Scenario::load("host-disk", &[]).unwrap();
        let driver = HostDriver::new(&scenario).unwrap();
        assert!(scenario.phases.iter().all(|phase| !driver.phase_capabilities(phase).figures_each_second));
        let job: Job = toml::from_str("rw = 'randread'\nblock = '4k'\ndepth = 32\nsize = '2g'").unwrap();
        let line = "   7 s  fio carries out reads: randread of 2g in blocks of 4k, depth 32";
        assert_eq!(how_far(7, "reads", &job), line);
        let kernels = Scenario::load("host-cpu", &[]).unwrap();
        let driver = HostDriver::new(&kernels).unwrap();
        assert!(kernels.phases.iter().all(|phase| driver.phase_capabilities(phase).figures_each_second));
        let slice_ms = |name: &str| {
            let phase = kernels.phases.iter().find(|phase| phase.name == name).unwrap();
            driver.phase_capabilities(phase).slice_ms
        };
        assert_eq!((slice_ms("spawn-1"), slice_ms("fsync-1")), (Some(SLICE_MS_THREADS), Some(SLICE_MS_DISK)));
    }
}
