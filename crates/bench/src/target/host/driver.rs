//! Scenarios of driver `host`: compute kernels on this machine, and its disk through fio.
//!
//! `[dataset]`: `directory` (of the test files) and `disk_gib` (size of the disk, for the quota). Operations: either
//! `kernel = "..."` or the job of fio (`rw`, `block`, `depth`, ...).

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::fio::{self, Job};
use super::{Host, Kernel};
use crate::engine::{Ended, Event, Load, Segment, SegmentOutcome, Shared, threads};
use crate::error::{Error, Result};
use crate::options::Context;
use crate::progress::{Progress, position};
use crate::protocol::OperationChoice;
use crate::recorder::{Recorder, Second, Window};
use crate::result::{Check, Target};
use crate::scenario::{OPERATION_KEYS, PHASE_KEYS, Phase, Scenario, no_keys, typed};
use crate::target::driver::SLICE_MS_THREADS;
use crate::target::driver::{Counts, Driver, empty_outcome};
use crate::target::plan::{plan, segments};

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

/// The driver of one scenario.
pub(crate) struct HostDriver {
    scenario: Scenario,
    dataset: DatasetOptions,
    works: Vec<Workload>,
    findings: Vec<String>,
}

impl HostDriver {
    pub(crate) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let dataset: DatasetOptions = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let mut works = Vec::new();
        for operation in &scenario.operations {
            let place = format!("operation `{}`", operation.name);
            works.push(if operation.driver_keys.contains_key("kernel") {
                Workload::Kernel(
                    typed::<KernelOptions>(operation.driver_keys.clone(), &place, OPERATION_KEYS)?.kernel,
                )
            } else {
                let job: Job = typed(operation.driver_keys.clone(), &place, OPERATION_KEYS)?;
                job.check().map_err(|what| format!("{place}: {what}"))?;
                Workload::Fio(job)
            });
        }
        let driver = Self { scenario: scenario.clone(), dataset, works, findings: Vec::new() };
        for phase in &scenario.phases {
            let jobs = driver.jobs(phase);
            let classes = phase.mixes.iter().map(|mix| mix.operations.len()).sum::<usize>();
            if !jobs.is_empty() && (jobs.len() != 1 || classes != 1) {
                return Err(format!(
                    "phase `{}`: a job of fio has a phase of its own: operations = [\"one\"]",
                    phase.name
                ));
            }
            for mix in &phase.mixes {
                no_keys(&mix.driver_keys, &format!("phase `{}`", phase.name), PHASE_KEYS)?;
            }
        }
        Ok(driver)
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

    fn fio(
        &mut self,
        phase: &Phase,
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<SegmentOutcome> {
        let (class, job) = match self.jobs(phase)[..] {
            [(class, job)] => (class, job.clone()),
            _ => return Err(Error::Options("BUG: a phase of fio has one job".to_owned())),
        };
        let name = self.scenario.operations[usize::from(class)].name.clone();
        let at = Instant::now();
        let started_ms = crate::engine::event::now_ms();
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
        // fio does not report the time of each operation, so all of them stand in one second.
        on_event(Event::Second(Box::new(recorder.take_second(second))));
        Ok(SegmentOutcome {
            recorder,
            started_ms,
            measured: measured.took,
            ended: Ended::Finished,
            first_loss_s: None,
        })
    }

    fn kernels(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Vec<SegmentOutcome>> {
        let groups: Vec<(u32, Vec<(u16, u32)>)> = phase
            .mixes
            .iter()
            .map(|mix| {
                let classes = mix.operations.iter().map(|name| {
                    (
                        self.scenario.class_of(name),
                        self.scenario.operation(name).map_or(0, |operation| operation.weight),
                    )
                });
                (mix.connections, classes.collect())
            })
            .collect();
        let choice = OperationChoice::new(&groups).map_err(Error::Options)?;
        let kernels = self.works.iter().map(|work| match work {
            Workload::Kernel(kernel) => *kernel,
            // Phases of fio do not get here.
            Workload::Fio(_) => Kernel::Syscall,
        });
        let host = Host::new(kernels.collect(), choice, &self.dataset.directory);
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let plan = plan(phase, &self.scenario, nowhere, self.classes(), part);
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
    fn classes(&self) -> Vec<String> {
        self.scenario.operations.iter().map(|operation| operation.name.clone()).collect()
    }

    fn has_thread_each(&self) -> bool {
        true
    }

    fn open(&mut self, _: &Context, _: &Progress) -> Result<Target> {
        let mut product = None;
        if self.works.iter().any(|work| matches!(work, Workload::Fio(_))) {
            product = Some(fio::version()?);
        }
        let directory = &self.dataset.directory;
        if !directory.is_dir() {
            return Err(Error::Options(format!(
                "{} is no directory; name one on the disk to measure: --set dataset.directory=DIR",
                directory.display()
            )));
        }
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let settings =
            model.map(|(_, model)| ("processor".to_owned(), model.to_owned())).into_iter().collect();
        Ok(Target { address: "this machine".to_owned(), product, started_by_run: false, settings })
    }

    fn segments(&self, phase: &Phase, scenario: &Scenario) -> Vec<Segment> {
        let mut segments = segments(phase, scenario);
        if let [(_, job)] = self.jobs(phase)[..] {
            let window = fio::in_flight(&job.engine, job.depth.into(), job.direct) as usize;
            segments
                .iter_mut()
                .for_each(|one| one.loads = vec![Load::Closed { window, pause: Duration::ZERO }]);
        }
        segments
    }

    /// fio reports its figures at the end.
    fn has_figures_each_second(&self, phase: &Phase) -> bool {
        self.jobs(phase).is_empty()
    }

    fn slice_ms(&self, phase: &Phase) -> Option<u32> {
        let does =
            |work| phase.mixes.iter().flat_map(|mix| &mix.operations).any(|name| self.work(name) == work);
        let usual = if does(&Workload::Kernel(Kernel::Fsync)) { SLICE_MS_DISK } else { SLICE_MS_THREADS };
        self.jobs(phase).is_empty().then_some(usual)
    }

    fn run(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Vec<SegmentOutcome>> {
        if self.jobs(phase).is_empty() {
            return self.kernels(phase, part, shared, on_event);
        }
        // One file allows one fio.
        if part.0 > 0 {
            return Ok(vec![empty_outcome(self.classes().len(), on_event)]);
        }
        Ok(vec![self.fio(phase, shared, on_event)?])
    }

    fn verify(
        &mut self,
        _: &Phase,
        _: (u32, u32),
        _: &[SegmentOutcome],
        _: &Counts,
    ) -> Result<(Vec<Check>, Vec<String>)> {
        Ok((Vec::new(), std::mem::take(&mut self.findings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_fio_have_no_seconds_to_show_and_durable_writes_have_long_slices() {
        let scenario = Scenario::load("host-disk", &[]).unwrap();
        let driver = HostDriver::new(&scenario).unwrap();
        assert!(scenario.phases.iter().all(|phase| !driver.has_figures_each_second(phase)));
        let job: Job = toml::from_str("rw = 'randread'\nblock = '4k'\ndepth = 32\nsize = '2g'").unwrap();
        let line = "   7 s  fio carries out reads: randread of 2g in blocks of 4k, depth 32";
        assert_eq!(how_far(7, "reads", &job), line);
        let kernels = Scenario::load("host-cpu", &[]).unwrap();
        let driver = HostDriver::new(&kernels).unwrap();
        assert!(kernels.phases.iter().all(|phase| driver.has_figures_each_second(phase)));
        let slice_ms =
            |name: &str| driver.slice_ms(kernels.phases.iter().find(|phase| phase.name == name).unwrap());
        assert_eq!((slice_ms("spawn-1"), slice_ms("fsync-1")), (Some(SLICE_MS_THREADS), Some(SLICE_MS_DISK)));
    }
}
