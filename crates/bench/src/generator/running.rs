//! The load of one worker: sends what is due, reads what comes, keeps time.

use std::io;
use std::iter::Peekable;
use std::thread;
use std::time::{Duration, Instant};

use wire::mqtt::{Disconnect, Packet};

use super::codec::{self, PublishTemplate};
use super::connection::{Answers, Connection, Phase, Wire};
use super::poller::{Interest, Ready};
use super::worker::{Start, Worker};
use super::{FromWorker, Load};
use crate::error::Result;
use crate::limits::{LOOP_SLEEP_MAX_MS, SENDS_PER_TURN};
use crate::recorder::{Recorder, Window};
use crate::schedule::{Planned, Schedule};

const SECOND_NS: u64 = 1_000_000_000;
const NOT_SENT: &str = "due, but not sent before the drain time was over";
/// Sleep while the last answers come in.
const DRAIN_SLEEP_NS: u64 = 10_000_000;

/// The load itself, from start to the last answer.
pub(super) struct Running<'w, 'a> {
    worker: &'w mut Worker<'a>,
    wire: Wire,
    start: Start,
    window: Window,
    recorder: Recorder,
    schedule: Option<Peekable<Schedule>>,
    /// Connections with something to send in this turn.
    dirty: Vec<u32>,
    scratch: Vec<u8>,
    outstanding: usize,
    second: u64,
    tick_ns: u64,
    next_tick_ns: u64,
}

impl<'w, 'a> Running<'w, 'a> {
    pub(super) fn new(worker: &'w mut Worker<'a>, start: Start) -> Self {
        let plan = worker.plan;
        let devices = worker.devices.len() as u32;
        let schedule = match plan.load {
            Load::Open { rate, arrivals, seed } => {
                let share = rate * f64::from(devices) / f64::from(plan.connections);
                Some(
                    Schedule::new(arrivals, devices, share, seed.wrapping_add(worker.seed_offset)).peekable(),
                )
            }
            Load::Closed { .. } | Load::Idle => None,
        };
        let wire = Wire {
            protocol: plan.protocol,
            publish: PublishTemplate::new(plan.protocol, plan.payload.clone()),
            base_ts_ms: start.base_ts_ms,
        };
        let window = plan.window();
        Self {
            worker,
            wire,
            start,
            window,
            recorder: Recorder::new(window),
            schedule,
            dirty: Vec::new(),
            scratch: Vec::new(),
            outstanding: 0,
            second: 0,
            tick_ns: u64::from(plan.tick_us) * 1_000,
            next_tick_ns: 0,
        }
    }

    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder
    }

    fn now_ns(&self) -> u64 {
        // Wraps after 584 years.
        Instant::now().saturating_duration_since(self.start.at).as_nanos() as u64
    }

    pub(super) fn load(&mut self) -> Result<()> {
        self.fill_windows();
        loop {
            let now_ns = self.now_ns();
            if now_ns >= self.window.until_ns {
                break;
            }
            self.end_seconds(now_ns);
            self.enqueue_due(now_ns);
            self.send_dirty()?;
            let timeout_ns = self.until_next_ns(now_ns);
            let timeout_ns = self.sleep_tick(timeout_ns);
            self.receive(timeout_ns, true)?;
        }
        // What came due while the last turn ran belongs to the plan as well.
        self.enqueue_due(self.window.until_ns - 1);
        self.send_dirty()
    }

    /// Waits for outstanding answers, then books what is missing.
    pub(super) fn drain(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.worker.plan.drain;
        while (self.outstanding > 0 || self.is_behind()) && Instant::now() < deadline {
            let now_ns = self.now_ns();
            self.end_seconds(now_ns);
            self.enqueue_due(self.window.until_ns - 1);
            self.send_dirty()?;
            let sleep_ns = if self.is_behind() { 0 } else { DRAIN_SLEEP_NS };
            self.receive(sleep_ns, false)?;
        }
        for connection in self.worker.connections.iter().filter(|c| c.phase == Phase::Open) {
            let in_flight = connection.in_flight();
            self.recorder
                .error("sent, but not acknowledged before the drain time was over", in_flight as u64);
            let waiting = connection.outstanding() - in_flight;
            self.recorder.error(NOT_SENT, waiting as u64);
        }
        while let Some(due) = self.next_due(self.window.until_ns - 1) {
            self.recorder.planned(due.at_ns);
            self.recorder.error(NOT_SENT, 1);
        }
        self.close_second();
        Ok(())
    }

    /// Whether messages are due that have not even been looked at.
    fn is_behind(&mut self) -> bool {
        let last_ns = self.window.until_ns - 1;
        self.schedule.as_mut().and_then(Peekable::peek).is_some_and(|planned| planned.at_ns <= last_ns)
    }

    fn next_due(&mut self, last_ns: u64) -> Option<Planned> {
        self.schedule.as_mut()?.next_if(|planned| planned.at_ns <= last_ns)
    }

    fn fill_windows(&mut self) {
        let Load::Closed { window } = self.worker.plan.load else { return };
        let now_ns = self.now_ns();
        for index in 0..self.worker.connections.len() as u32 {
            for _ in 0..window {
                self.enqueue(index, now_ns);
            }
        }
    }

    /// Puts messages whose time has come into their connections' queues.
    fn enqueue_due(&mut self, now_ns: u64) {
        let last_ns = now_ns.min(self.window.until_ns - 1);
        for _ in 0..SENDS_PER_TURN {
            let Some(due) = self.next_due(last_ns) else { return };
            self.enqueue(due.device, due.at_ns);
        }
    }

    fn enqueue(&mut self, index: u32, intended_ns: u64) {
        self.recorder.planned(intended_ns);
        let connection = &mut self.worker.connections[index as usize];
        if connection.phase != Phase::Open {
            self.recorder.error("due on a lost connection", 1);
            return;
        }
        connection.enqueue(intended_ns);
        self.outstanding += 1;
        mark_dirty(connection, &mut self.dirty, index);
    }

    fn send_dirty(&mut self) -> Result<()> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.worker.connections[index as usize].dirty = false;
            self.pump(index)?;
        }
        self.dirty = dirty;
        Ok(())
    }

    fn pump(&mut self, index: u32) -> Result<()> {
        let now_ns = self.now_ns();
        let connection = &mut self.worker.connections[index as usize];
        if connection.phase != Phase::Open {
            return Ok(());
        }
        if let Err(error) = connection.pump(&self.wire, now_ns, &mut self.recorder, &mut self.scratch) {
            self.lost(index, &error);
            return Ok(());
        }
        let blocked = connection.is_blocked();
        if blocked != connection.wants_write {
            connection.wants_write = blocked;
            let interest = if blocked { Interest::ReadWrite } else { Interest::Read };
            self.worker.poller.modify(&connection.stream, index, interest)?;
        }
        Ok(())
    }

    fn receive(&mut self, timeout_ns: u64, refill: bool) -> Result<()> {
        let ready = self.worker.poller.wait(Duration::from_nanos(timeout_ns))?;
        for index in 0..ready {
            let event = self.worker.poller.event(index);
            self.handle(event, refill);
        }
        self.send_dirty()
    }

    fn handle(&mut self, event: Ready, refill: bool) {
        if event.readable {
            match self.read(event.token) {
                Ok(answers) => self.after_answers(event.token, answers, refill),
                Err(error) => return self.lost(event.token, &error),
            }
        }
        if event.writable {
            let connection = &mut self.worker.connections[event.token as usize];
            mark_dirty(connection, &mut self.dirty, event.token);
        }
    }

    fn read(&mut self, index: u32) -> io::Result<Answers> {
        let now_ns = self.now_ns();
        let connection = &mut self.worker.connections[index as usize];
        if connection.phase != Phase::Open {
            return Ok(Answers::default());
        }
        let mut answers = Answers::default();
        let mut ended = None;
        let recorder = &mut self.recorder;
        let buffer = &mut self.worker.read_buffer;
        let alive = connection.read(buffer, self.wire.protocol, |connection, packet| match packet {
            Packet::PubAck(ack) => {
                let one = connection.answered(ack, now_ns, recorder);
                answers.answered += one.answered;
                answers.acked += one.acked;
            }
            Packet::PingResp => {}
            Packet::Disconnect(disconnect) => ended = Some(disconnect_text(&disconnect)),
            other => ended = Some(format!("an unexpected packet: {other:?}")),
        });
        self.worker.shared.add_acked(answers.acked);
        self.outstanding -= answers.answered;
        match (alive?, ended) {
            (_, Some(reason)) => Err(io::Error::other(reason)),
            (false, None) => Err(io::Error::other("closed by the server")),
            (true, None) => Ok(answers),
        }
    }

    /// Closed load: every answer makes room for one message.
    fn after_answers(&mut self, index: u32, answers: Answers, refill: bool) {
        if refill && matches!(self.worker.plan.load, Load::Closed { .. }) {
            let now_ns = self.now_ns();
            for _ in 0..answers.answered {
                self.enqueue(index, now_ns);
            }
        } else if answers.answered > 0 {
            // Room in the receive window may let a waiting message go.
            let connection = &mut self.worker.connections[index as usize];
            if connection.outstanding() > connection.in_flight() {
                mark_dirty(connection, &mut self.dirty, index);
            }
        }
    }

    fn lost(&mut self, index: u32, error: &io::Error) {
        let connection = &mut self.worker.connections[index as usize];
        if connection.phase != Phase::Open {
            return;
        }
        connection.phase = Phase::Closed;
        let outstanding = connection.outstanding();
        self.outstanding -= outstanding;
        self.worker.poller.remove(&connection.stream);
        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        self.recorder.error(&format!("connection lost: {error}"), 1);
        self.recorder.error("outstanding on a lost connection", outstanding as u64);
    }

    fn until_next_ns(&mut self, now_ns: u64) -> u64 {
        let due_ns =
            self.schedule.as_mut().and_then(Peekable::peek).map_or(u64::MAX, |planned| planned.at_ns);
        let second_ns = (self.second + 1) * SECOND_NS;
        due_ns
            .min(second_ns)
            .min(self.window.until_ns)
            .saturating_sub(now_ns)
            .min(LOOP_SLEEP_MAX_MS * 1_000_000)
    }

    /// Sleeps through a tick without looking at answers, so that one turn serves many messages. Returns how long
    /// `receive` may wait after it.
    fn sleep_tick(&mut self, timeout_ns: u64) -> u64 {
        let tick_ns = self.tick_ns;
        if tick_ns == 0 || self.schedule.is_none() {
            return timeout_ns;
        }
        let now_ns = self.now_ns();
        if self.next_tick_ns > now_ns {
            thread::sleep(Duration::from_nanos(self.next_tick_ns - now_ns));
        }
        self.next_tick_ns = self.now_ns() + tick_ns;
        0
    }

    fn end_seconds(&mut self, now_ns: u64) {
        while now_ns >= (self.second + 1) * SECOND_NS {
            self.close_second();
            self.ping_quiet(now_ns);
        }
    }

    fn close_second(&mut self) {
        let second = self.recorder.take_second(self.second);
        self.second += 1;
        let _ = self.worker.to_main.send(FromWorker::Second(second));
    }

    /// Keeps connections alive that have sent nothing for half their keep-alive.
    fn ping_quiet(&mut self, now_ns: u64) {
        let quiet_ns = u64::from(self.worker.plan.keep_alive_s) * SECOND_NS / 2;
        if quiet_ns == 0 {
            return;
        }
        let mut packet = Vec::new();
        codec::ping(&mut packet);
        for index in 0..self.worker.connections.len() as u32 {
            let connection = &mut self.worker.connections[index as usize];
            if connection.phase == Phase::Open && now_ns - connection.last_sent_ns.min(now_ns) >= quiet_ns {
                connection.last_sent_ns = now_ns;
                if let Err(error) = connection.send(&packet) {
                    self.lost(index, &error);
                }
            }
        }
    }
}

fn disconnect_text(disconnect: &Disconnect<'_>) -> String {
    let why = disconnect.properties.reason_string().map(|why| format!(": {why}")).unwrap_or_default();
    format!("DISCONNECT {}{why}", disconnect.reason)
}

fn mark_dirty(connection: &mut Connection, dirty: &mut Vec<u32>, index: u32) {
    if !connection.dirty {
        connection.dirty = true;
        dirty.push(index);
    }
}
