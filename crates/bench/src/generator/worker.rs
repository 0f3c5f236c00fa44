//! One worker thread: its connections, its share of the schedule, its recorder, one epoll loop.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::mpsc;
use std::time::Instant;

use rustix::thread::set_current_timer_slack;

use super::codec;
use super::connection::{Connection, Phase, Tally};
use super::handshake::Opener;
use super::poller::Poller;
use super::running::Running;
use super::{FromWorker, Plan, Shared};
use crate::error::Result;
use crate::limits::READ_BYTES;
use crate::recorder::Recorder;

/// How much later than asked the kernel may wake us.
const TIMER_SLACK_NS: u64 = 1_000;

/// Told to start the load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) at: Instant,
    pub(super) base_ts_ms: u64,
}

pub(super) struct Worker<'a> {
    pub(super) plan: &'a Plan,
    pub(super) devices: Range<u32>,
    pub(super) shared: &'a Shared,
    pub(super) to_main: mpsc::Sender<FromWorker>,
    pub(super) poller: Poller,
    pub(super) connections: Vec<Connection>,
    pub(super) read_buffer: Vec<u8>,
    pub(super) seed_offset: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        index: usize,
        devices: Range<u32>,
        shared: &'a Shared,
        to_main: mpsc::Sender<FromWorker>,
    ) -> Result<Self> {
        Ok(Self {
            plan,
            connections: Vec::with_capacity(devices.len()),
            devices,
            shared,
            to_main,
            poller: Poller::new()?,
            read_buffer: vec![0; READ_BYTES],
            seed_offset: index as u64,
        })
    }

    /// Opens, waits for the start, runs the load, drains, disconnects.
    pub(super) fn run(mut self, on_start: &mpsc::Receiver<Start>) -> Result<(Recorder, Vec<Tally>)> {
        // The kernel's default slack of 50 us would be lag. Without shorter slack the run is less precise, not wrong.
        let _ = set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
        let devices = self.devices.clone();
        let opened = self.opener().open_all(devices);
        // The main thread waits for every worker, also for one that fails.
        let failures =
            opened.as_ref().cloned().unwrap_or_else(|error| BTreeMap::from([(error.to_string(), 1)]));
        let _ = self.to_main.send(FromWorker::Opened { failures });
        opened?;
        let Ok(start) = on_start.recv() else {
            return Ok((Recorder::new(self.plan.window()), Vec::new()));
        };
        let mut running = Running::new(&mut self, start);
        running.load()?;
        running.drain()?;
        let recorder = running.into_recorder();
        let tallies = self.connections.iter().map(|c| c.tally).collect();
        self.disconnect();
        Ok((recorder, tallies))
    }

    fn opener(&mut self) -> Opener<'_> {
        Opener {
            plan: self.plan,
            shared: self.shared,
            poller: &mut self.poller,
            connections: &mut self.connections,
            read_buffer: &mut self.read_buffer,
        }
    }

    fn disconnect(&mut self) {
        let mut packet = Vec::new();
        codec::disconnect(&mut packet);
        for connection in self.connections.iter_mut().filter(|c| c.phase == Phase::Open) {
            // The run is over; a server that is gone by now has nothing to lose.
            let _ = connection.send(&packet);
        }
    }
}
