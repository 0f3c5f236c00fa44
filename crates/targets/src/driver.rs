//! The interface between the runner and a driver.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use load::Result;
use load::engine::event::now_ms;
use load::engine::{Ended, Event, Segment, SegmentOutcome, Shared};
use load::progress::Progress;
use load::recorder::{Recorder, Window};
use load::result::{Check, RunResult, Target};
use load::sampling::Source;
use load::scenario::{Phase, Scenario};
use load::server_process::ServerProcess;

use super::plan;
use crate::Context;

/// Default length of a slice for drivers of the event engine, milliseconds. A fast server carries out some thousand
/// operations in it, and most disturbances by other processes last longer.
pub const SLICE_MS_EVENTS: u32 = 20;

/// The same for drivers with one thread per connection, which start and stop more slowly.
pub const SLICE_MS_THREADS: u32 = 50;

/// The message of a panic if the runner uses a driver before it has opened it.
pub const NOT_OPEN: &str = "BUG: the driver is not open";

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// A kind of target: its name in scenarios, and the keys of a scenario that its driver reads.
#[derive(Debug, Clone, Copy)]
pub struct TargetKind {
    /// `driver` in `[scenario]`.
    pub name: &'static str,
    /// Creates the driver of a scenario, without access to files or the network. The error states which part of the
    /// scenario it does not understand.
    pub new: fn(&Scenario) -> std::result::Result<Box<dyn Driver>, String>,
    /// Whether `[target]` may have keys besides those of the runner.
    pub target_keys: bool,
    /// Whether an operation may have such keys.
    pub operation_keys: bool,
    /// Whether `[dataset]` may have keys.
    pub dataset_keys: bool,
}

/// The properties of a driver with its scenario, the same for all phases.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// The names of the operation classes, by class number.
    pub classes: Vec<String>,
    /// The reason why several processes cannot share the load; `None` if they can.
    pub one_process: Option<&'static str>,
    /// Whether [`Driver::open`] starts a server.
    pub starts_server: bool,
    /// Whether every connection has its own thread. Otherwise the phase gives the number of threads.
    pub thread_each: bool,
    /// Whether each process verifies its part of a phase. Otherwise the first process verifies the whole.
    pub verifies_parts: bool,
}

impl Capabilities {
    /// Those of a driver of the event engine, for a server that several processes can load.
    pub fn of_events(scenario: &Scenario) -> Self {
        Self {
            classes: scenario.classes(),
            one_process: None,
            starts_server: false,
            thread_each: false,
            verifies_parts: false,
        }
    }

    /// The same for a driver with a thread for each connection.
    pub fn of_threads(scenario: &Scenario) -> Self {
        Self { thread_each: true, ..Self::of_events(scenario) }
    }
}

/// The properties of a driver in one phase.
#[derive(Debug, Clone)]
pub struct PhaseCapabilities {
    /// The number of connections.
    pub connections: u32,
    /// The segments, each with its own result, in the order in which [`Driver::run`] carries them out.
    pub segments: Vec<Segment>,
    /// The slice length that suits the loads of the phase in a comparison, milliseconds; `None` if the phase cannot be
    /// sliced.
    pub slice_ms: Option<u32>,
    /// Whether each second has figures to show. Otherwise the driver reports its progress with [`Event::Note`].
    pub figures_each_second: bool,
}

impl PhaseCapabilities {
    /// Those of a phase whose loads are as the scenario states them.
    pub fn new(phase: &Phase, scenario: &Scenario, slice_ms: Option<u32>) -> Self {
        Self {
            connections: phase.connections(),
            segments: plan::segments(phase, scenario),
            slice_ms,
            figures_each_second: true,
        }
    }
}

/// The server that a driver has connected to.
#[derive(Debug, Default)]
pub struct Opened {
    /// Its description for the result.
    pub target: Target,
    /// Its process, if it runs on this machine and is known.
    pub server_pid: Option<u32>,
    /// The processes of a server that the run kills and restarts.
    pub server_process: Option<ServerProcess>,
    /// The `[target]` that other processes use to reach a server which this process started.
    pub target_overrides: toml::Table,
}

/// A phase to carry out.
pub struct PhaseRun<'a> {
    pub phase: &'a Phase,
    /// The index of this process's part of the connections, and the number of parts.
    pub part: (u32, u32),
    /// The state that all threads of the run share.
    pub shared: &'a Shared,
    /// Takes the events of the run.
    pub on_event: &'a mut dyn FnMut(Event),
}

/// A phase that was carried out.
pub struct PhaseEnd<'a> {
    pub phase: &'a Phase,
    /// The index of this process's part of the connections, and the number of parts.
    pub part: (u32, u32),
    /// The outcomes in this process.
    pub segments: &'a [SegmentOutcome],
    /// The sum of [`Driver::local_counts`] over all processes.
    pub all_counts: &'a Counts,
}

/// The result of a verification.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub checks: Vec<Check>,
    /// Sentences for the result.
    pub findings: Vec<String>,
}

/// The operations that the runner needs of a driver.
pub trait Driver {
    /// The properties of the driver with its scenario.
    fn capabilities(&self) -> Capabilities;

    /// The properties of the driver in a phase.
    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities;

    /// Compares the needs of the phases with the limits of this machine. The runner calls it before anything is opened.
    /// The error names the limit and how to raise it.
    fn limits(&self, _phases: &[&Phase]) -> Result<()> {
        Ok(())
    }

    /// Connects to the server. The runner calls it once before the first phase.
    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened>;

    /// The sources to sample each second during a phase, besides the server's process and the machine.
    fn sources(&self) -> Vec<Box<dyn Source>> {
        Vec::new()
    }

    /// Prepares a phase. With several processes, only the first calls it. The error states what is missing and which
    /// command creates it.
    fn prepare(&mut self, _phase: &Phase) -> Result<()> {
        Ok(())
    }

    /// Carries out a phase. Returns an outcome for each segment.
    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>>;

    /// What this process did in the finished phase, for comparison with the server's counters.
    fn local_counts(&mut self, _segments: &[SegmentOutcome]) -> Counts {
        Counts::new()
    }

    /// Compares the results of a phase with the server, in the processes of [`Capabilities::verifies_parts`].
    fn verify(&mut self, _end: &PhaseEnd<'_>) -> Result<Verdict> {
        Ok(Verdict::default())
    }

    /// Replaces [`Self::verify`] for a phase that was stopped: returns the checks and findings so far.
    fn stopped(&mut self) -> Verdict {
        Verdict::default()
    }

    /// The findings of the whole run, of all processes together.
    fn conclusions(&self, _result: &RunResult) -> Vec<String> {
        Vec::new()
    }

    /// Ends the use of the server. The runner calls it once. The error states how a server that the run started failed to
    /// end.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The description of a server of this program that the run started.
pub fn own_server(address: String, durability: String) -> Target {
    Target {
        address,
        product: Some(format!("tacho {}", env!("CARGO_PKG_VERSION"))),
        tls: None,
        started_by_run: true,
        settings: [("durability".to_owned(), durability)].into(),
    }
}

/// The outcome of a process that has no part in a phase.
pub fn empty_outcome(classes: usize, on_event: &mut dyn FnMut(Event)) -> SegmentOutcome {
    on_event(Event::Started { segment: 0, at: Instant::now() });
    SegmentOutcome {
        recorder: Recorder::new(Window::default(), classes),
        started_ms: now_ms(),
        measured: Duration::ZERO,
        ended: Ended::Finished,
        first_loss_s: None,
    }
}
