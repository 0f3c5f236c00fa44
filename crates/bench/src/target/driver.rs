//! The interface between the runner and a driver.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::plan;
use crate::engine::event::now_ms;
use crate::engine::{self, Ended, Event, SegmentOutcome, Shared};
use crate::error::Result;
use crate::options::Context;
use crate::progress::Progress;
use crate::recorder::{Recorder, Window};
use crate::result::{Check, RunResult, Target};
use crate::sampling::Source;
use crate::scenario::{Phase, Scenario};
use crate::server_process::ServerProcess;

/// Default length of a slice for drivers of the event engine, milliseconds. A fast server carries out some thousand
/// operations in it, and most disturbances by other processes last longer.
pub(crate) const SLICE_MS_EVENTS: u32 = 20;

/// The same for drivers with one thread per connection, which start and stop more slowly.
pub(crate) const SLICE_MS_THREADS: u32 = 50;

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// The operations that the runner needs of a driver. A driver is created from a scenario alone, without access to files
/// or the network.
pub(crate) trait Driver {
    /// The names of the operation classes, by class number.
    fn classes(&self) -> Vec<String>;

    /// Connects to the server and returns its description. The runner calls it once before the first phase.
    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Target>;

    /// The process of the server, if it runs on this machine and is known.
    fn server_pid(&self) -> Option<u32> {
        None
    }

    /// The processes of a server that the run kills and restarts.
    fn server_process(&self) -> Option<ServerProcess> {
        None
    }

    /// Whether several processes can share the load. The error gives the reason.
    fn several_processes(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    /// The slice length that suits the loads of a phase in a comparison, milliseconds; `None` if the phase cannot be
    /// sliced.
    fn slice_ms(&self, _phase: &Phase) -> Option<u32> {
        None
    }

    /// Whether [`Self::open`] starts a server.
    fn starts_server(&self) -> bool {
        false
    }

    /// The `[target]` that other processes use to reach the server which this process started.
    fn target_overrides(&self) -> toml::Table {
        toml::Table::new()
    }

    /// The number of connections of a phase.
    fn connections(&self, phase: &Phase) -> u32 {
        phase.connections()
    }

    /// Whether every connection has its own thread. Otherwise the phase gives the number of threads.
    fn has_thread_each(&self) -> bool {
        false
    }

    /// Whether each second of a phase has figures to show. Otherwise the driver reports its progress with
    /// [`Event::Note`].
    fn has_figures_each_second(&self, _phase: &Phase) -> bool {
        true
    }

    /// The segments of a phase, each with its own result, in the order of [`Self::run`].
    fn segments(&self, phase: &Phase, scenario: &Scenario) -> Vec<engine::Segment> {
        plan::segments(phase, scenario)
    }

    /// Compares the needs of the phases with the limits of this machine. The runner calls it before anything is opened.
    /// The error names the limit and how to raise it.
    fn limits(&self, _phases: &[&Phase]) -> Result<()> {
        Ok(())
    }

    /// The sources to sample each second during a phase, besides the server's process and the machine.
    fn sources(&self) -> Vec<Box<dyn Source>> {
        Vec::new()
    }

    /// Prepares a phase. With several processes, only the first calls it. The error says what is missing and which
    /// command creates it.
    fn prepare(&mut self, _phase: &Phase) -> Result<()> {
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

    /// What this process did in the finished phase, for comparison with the server's counters.
    fn local_counts(&mut self, _segments: &[SegmentOutcome]) -> Counts {
        Counts::new()
    }

    /// Compares the results of a phase with the server, in every process. `_all_counts` is the sum over all processes;
    /// only the first process compares it with the server's counters. Returns checks and findings.
    fn verify(
        &mut self,
        _phase: &Phase,
        _part: (u32, u32),
        _segments: &[SegmentOutcome],
        _all_counts: &Counts,
    ) -> Result<(Vec<Check>, Vec<String>)> {
        Ok((Vec::new(), Vec::new()))
    }

    /// Replaces [`Self::verify`] for a phase that was stopped: returns the checks and findings so far.
    fn stopped(&mut self) -> (Vec<Check>, Vec<String>) {
        (Vec::new(), Vec::new())
    }

    /// The findings of the whole run, of all processes together.
    fn conclusions(&self, _result: &RunResult) -> Vec<String> {
        Vec::new()
    }

    /// Ends the use of the server. The runner calls it once. The error says how a server that the run started failed to
    /// end.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The outcome of a process that has no part in a phase.
pub(crate) fn empty_outcome(classes: usize, on_event: &mut dyn FnMut(Event)) -> SegmentOutcome {
    on_event(Event::Started { segment: 0, at: Instant::now() });
    SegmentOutcome {
        recorder: Recorder::new(Window::default(), classes),
        started_ms: now_ms(),
        measured: Duration::ZERO,
        ended: Ended::Finished,
        first_loss_s: None,
    }
}
