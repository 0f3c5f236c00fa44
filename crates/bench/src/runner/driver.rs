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

/// Default length of a slice in which a driver of the event engine has the processors, milliseconds: some thousand operations of a
/// fast server, and shorter than most of what a neighbour does.
pub(super) const SLICE_MS_EVENTS: u32 = 20;

/// The same of a driver with a thread for each connection, which come and go more slowly.
pub(super) const SLICE_MS_THREADS: u32 = 50;

/// What was done, by name.
pub type Counts = BTreeMap<String, u64>;

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
    fn server_process(&self) -> Option<ServerProcess> {
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
    fn target_overrides(&self) -> toml::Table {
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

    /// What this process did in the phase that is over, for comparison with what the server counted.
    fn local_counts(&mut self, _segments: &[SegmentOutcome]) -> Counts {
        Counts::new()
    }

    /// Called after each phase in every process, with what all of them did: what was compared, and what it shows in sentences.
    /// What the server counted of all is for the first process.
    fn verify(
        &mut self,
        _phase: &Phase,
        _part: (u32, u32),
        _segments: &[SegmentOutcome],
        _all_counts: &Counts,
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

/// The part of a process that has nothing to do in a phase.
pub(super) fn empty_outcome(classes: usize, on_event: &mut dyn FnMut(Event)) -> SegmentOutcome {
    on_event(Event::Started { segment: 0, at: Instant::now() });
    SegmentOutcome {
        recorder: Recorder::new(Window::default(), classes),
        started_ms: now_ms(),
        measured: Duration::ZERO,
        ended: Ended::Finished,
        first_loss_s: None,
    }
}
