//! One worker thread: its connections, its share of the schedule, its recorder, and its epoll loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use super::connection::{Connection, IoContext, Phase, SendCounts};
use super::deferred_reads::{DeferredReads, deferral_ns};
use super::feed::Feed;
use super::messages::{SegmentStart, WorkerMessage, WorkerSegment};
use super::poller::{Interest, Poller, Ready};
use super::reading::Answers;
use super::shares::Share;
use super::timestamped_reader::TimestampedReader;
use crate::engine::{Ended, Load, Plan, Shared};
use crate::error::Result;
use crate::limits::SENDS_PER_POLL;
use crate::protocol::Protocol;
use crate::recorder::{Latency, Recorder, Window};

/// The largest delay of a wake-up that this thread allows the kernel.
const TIMER_SLACK_NS: u64 = 1_000;

pub(super) struct Worker<'a, P: Protocol> {
    pub(super) protocol: &'a P,
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) index: usize,
    to_main: mpsc::Sender<WorkerMessage>,
    pub(super) poller: Poller,
    pub(super) connections: Vec<Connection<P::Session>>,
    /// The indices of the connections of each group.
    pub(super) groups: Vec<Range<u32>>,
    pub(super) reader: TimestampedReader,
    pub(super) deferred: DeferredReads,
    /// The time before the next due operation during which the thread polls instead of sleeping.
    pub(super) busy_poll_ns: u64,
    /// Whether an operation is due at the end of the current wait, or too soon after it to sleep.
    pub(super) is_next_due: bool,
    scratch: Vec<u8>,
    /// Connections with bytes to send in this poll.
    dirty: Vec<u32>,
    pub(super) recorder: Recorder,
    /// The start of the segment, or of the opening before it.
    pub(super) epoch: Instant,
    wall_ms: u64,
    pub(super) handshakes: Latency,
    /// Failed openings before the first segment.
    pub(super) failures: BTreeMap<String, u64>,
    /// The number of handshakes in progress.
    pub(super) pending: usize,
    /// The start times of handshakes and their connections, in order. Finished ones are removed when they reach the
    /// front.
    pub(super) begun: VecDeque<(u64, u32)>,
    /// The source of operations of each group in this segment.
    pub(super) feeds: Vec<Feed>,
    /// The time of the next operation that may be sent during a poll; [`u64::MAX`] if no more may be sent in this poll.
    pub(super) due_ns: u64,
    /// Operations that are due later are not sent during a poll: they belong to no load, or to a load on ticks.
    pub(super) due_until_ns: u64,
    /// Whether an answer allows another operation.
    pub(super) refill: bool,
    /// The number of operations that are due or sent, and not answered.
    pub(super) outstanding: usize,
    /// The number of connections that have more operations.
    pub(super) active: usize,
    /// Connections of a closed loop that pause, with the end of the pause.
    pub(super) paused: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) last_received_ns: u64,
    pub(super) first_loss_ns: Option<u64>,
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub(super) fn new(
        protocol: &'a P,
        plan: &'a Plan,
        shared: &'a Shared,
        index: usize,
        share: &Share,
        to_main: mpsc::Sender<WorkerMessage>,
    ) -> Result<Self> {
        let mut connections = Vec::with_capacity(share.iter().map(ExactSizeIterator::len).sum());
        let mut groups = Vec::with_capacity(share.len());
        for numbers in share {
            let first = connections.len() as u32;
            connections.extend(numbers.clone().map(|number| {
                let session = protocol.session(number);
                let lifetime = protocol.lifetime(&session);
                Connection::new(number, session, lifetime)
            }));
            groups.push(first..connections.len() as u32);
        }
        let stamped =
            protocol.answers_can_wait() && (0..groups.len()).any(|group| plan.has_free_answers(group));
        Ok(Self {
            protocol,
            plan,
            shared,
            index,
            to_main,
            poller: Poller::new()?,
            connections,
            groups,
            reader: TimestampedReader::new(stamped),
            deferred: DeferredReads::default(),
            busy_poll_ns: u64::from(plan.busy_poll_us) * 1_000,
            is_next_due: false,
            scratch: Vec::new(),
            dirty: Vec::new(),
            recorder: Recorder::new(Window::default(), plan.classes.len()),
            epoch: Instant::now(),
            wall_ms: 0,
            handshakes: Latency::new(),
            failures: BTreeMap::new(),
            pending: 0,
            begun: VecDeque::new(),
            feeds: Vec::new(),
            due_ns: u64::MAX,
            due_until_ns: 0,
            refill: false,
            outstanding: 0,
            active: 0,
            paused: BinaryHeap::new(),
            last_received_ns: 0,
            first_loss_ns: None,
        })
    }

    /// Opens the connections, runs one segment per start message until the channel closes, and closes the connections.
    pub(super) fn run(mut self, on_start: &mpsc::Receiver<SegmentStart>) -> Result<Vec<(u32, P::Session)>> {
        // The kernel's default slack of 50 us would appear as lag. If the call fails, the run is less precise but not
        // wrong.
        let _ = set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
        let opened = if self.plan.connect.by_load { Ok(()) } else { self.open_all() };
        // The main thread waits for every worker, also for one that fails.
        let mut failures = std::mem::take(&mut self.failures);
        if let Err(error) = &opened {
            failures.insert(error.to_string(), 1);
        }
        let handshakes = std::mem::take(&mut self.handshakes);
        self.send_to_main(WorkerMessage::Opened { failures, handshakes });
        opened?;
        while let Ok(start) = on_start.recv() {
            let done = self.run_segment(start)?;
            self.send_to_main(WorkerMessage::Segment { worker: self.index, done: Box::new(done) });
        }
        self.close_connections();
        Ok(self.connections.into_iter().map(|c| (c.number, c.session)).collect())
    }

    fn run_segment(&mut self, start: SegmentStart) -> Result<WorkerSegment> {
        let segment = &self.plan.segments[start.segment].in_slice(start.slice);
        self.epoch = start.at;
        self.wall_ms = start.wall_ms;
        self.recorder = Recorder::new(segment.window(), self.plan.classes.len());
        self.first_loss_ns = None;
        self.last_received_ns = 0;
        self.begun.clear();
        self.reader.begin_segment();
        // A worker with ticks or busy polling reads answers anyway, so it does not defer them.
        let holds = self.reader.wants_stamps() && self.plan.tick_us == 0 && self.busy_poll_ns == 0;
        self.deferred =
            DeferredReads::new(if holds { deferral_ns(&segment.loads, &self.plan.groups) } else { 0 });
        self.begin_connections(&segment.loads);
        if let Some(slice) = start.slice {
            for connection in &mut self.connections {
                self.protocol.reseed(&mut connection.session, slice.seed);
            }
        }
        let (ended, measured_until_ns) = self.load(segment)?;
        let window = segment.window();
        Ok(WorkerSegment {
            measured: Duration::from_nanos(
                measured_until_ns.min(window.until_ns).saturating_sub(window.from_ns),
            ),
            recorder: std::mem::take(&mut self.recorder),
            ended,
            first_loss_ns: self.first_loss_ns,
        })
    }

    /// Chooses the source of arrival times of each connection: the kernel where the load does not wait for answers, the
    /// time of reading elsewhere.
    pub(super) fn begin_connections(&mut self, loads: &[Load]) {
        let stamped = self.reader.wants_stamps();
        for (load, group) in loads.iter().zip(&self.groups) {
            for index in group.clone() {
                self.connections[index as usize].begin_segment(stamped && !load.waits_for_answers());
            }
        }
    }

    /// Whether the kernel must stamp data on this connection: one of its loads needs it.
    pub(super) fn asks_for_stamps(&self, index: u32) -> bool {
        self.reader.wants_stamps() && self.plan.has_free_answers(self.group_of(index))
    }

    pub(super) fn send_to_main(&self, what: WorkerMessage) {
        // The main thread has stopped listening when the run ends with an error.
        let _ = self.to_main.send(what);
    }

    pub(super) fn now_ns(&self) -> u64 {
        since_ns(self.epoch)
    }

    /// The group of a connection.
    pub(super) fn group_of(&self, index: u32) -> usize {
        self.groups.iter().position(|group| group.contains(&index)).unwrap_or(0)
    }

    pub(super) fn mark_dirty(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(index);
        }
    }

    /// Sends on every connection that has bytes to send.
    pub(super) fn send_dirty(&mut self) -> Result<()> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.connections[index as usize].dirty = false;
            self.pump(index)?;
        }
        // Connections that were marked meanwhile wait for the next poll.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
        Ok(())
    }

    /// Sends operations that came due while the worker read answers, at most `left`: an answer can wait, and a late
    /// send is lag. Two kinds of connections wait until the end of the poll: one that must be opened first, because
    /// pending events may refer to its old socket, and one whose window is full, because the answer that makes room may
    /// have arrived already.
    fn send_what_came_due(&mut self, left: &mut usize) -> Result<()> {
        if self.due_ns == u64::MAX {
            return Ok(());
        }
        let now_ns = self.now_ns();
        if now_ns < self.due_ns {
            return Ok(());
        }
        let marked = self.dirty.len();
        self.enqueue_operations(now_ns.min(self.due_until_ns), left);
        let until = self.dirty.len();
        let mut kept = marked;
        for at in marked..until {
            let index = self.dirty[at];
            let connection = &mut self.connections[index as usize];
            if connection.phase == Phase::Open && connection.has_room_for_all() {
                connection.dirty = false;
                self.pump(index)?;
            } else {
                self.dirty[kept] = index;
                kept += 1;
            }
        }
        // The entries behind `until` were marked meanwhile.
        self.dirty.drain(kept..until);
        Ok(())
    }

    pub(super) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn pump(&mut self, index: u32) -> Result<()> {
        let connection = &mut self.connections[index as usize];
        match connection.phase {
            Phase::Open => {}
            Phase::BetweenConnections if connection.has_to_send() => return self.open_again(index),
            _ => return Ok(()),
        }
        let was_exhausted = connection.exhausted;
        let epoch = self.epoch;
        let mut context = IoContext {
            protocol: self.protocol,
            recorder: &mut self.recorder,
            scratch: &mut self.scratch,
            now: &|| since_ns(epoch),
            wall_ms: self.wall_ms,
        };
        let mut counts = SendCounts::default();
        let sent = connection.pump(&mut context, &mut counts);
        self.outstanding = self.outstanding + counts.begun - counts.at_once - counts.withdrawn;
        if connection.exhausted && !was_exhausted {
            self.active -= 1;
        }
        if let Err(error) = sent {
            self.not_sent(index, &error);
            return Ok(());
        }
        self.watch_writability(index)?;
        self.note_stuck(index);
        if counts.at_once > 0 {
            let connection = &mut self.connections[index as usize];
            connection.answered_ns = connection.last_sent_ns;
            self.shared.add_completed(counts.at_once as u64);
            self.make_room(index, counts.at_once);
        }
        Ok(())
    }

    /// Registers for writability exactly while bytes wait for the socket.
    fn watch_writability(&mut self, index: u32) -> Result<()> {
        let connection = &mut self.connections[index as usize];
        let blocked = connection.is_blocked();
        if blocked != connection.wants_write
            && let Some(stream) = &connection.stream
        {
            connection.wants_write = blocked;
            let interest = if blocked { Interest::ReadWrite } else { Interest::Read };
            self.poller.modify(stream, index, interest)?;
        }
        Ok(())
    }

    /// Handles answered operations: in a closed loop each allows another one.
    fn make_room(&mut self, index: u32, answered: usize) {
        let pause_ns = if self.refill { self.pause_of(index) } else { None };
        let connection = &mut self.connections[index as usize];
        match pause_ns {
            Some(0) if !connection.exhausted => connection.credits += answered,
            Some(pause_ns) if !connection.exhausted => {
                let resumes_ns = self.last_received_ns + pause_ns;
                self.paused.extend((0..answered).map(|_| Reverse((resumes_ns, index))));
            }
            _ => {}
        }
        // The window may have room for a waiting operation now.
        if connection.has_to_send() {
            self.mark_dirty(index);
        }
    }

    /// The pause of a connection of a closed loop after an answer; `None` in other loads.
    fn pause_of(&self, index: u32) -> Option<u64> {
        match self.feeds.get(self.group_of(index)) {
            Some(Feed::Closed { pause_ns, .. }) => Some(*pause_ns),
            _ => None,
        }
    }

    /// Waits for ready sockets, reads the data, and sends the operations that become possible.
    pub(super) fn poll_once(&mut self, timeout_ns: u64) -> Result<()> {
        let timeout_ns = if self.has_dirty() { 0 } else { timeout_ns };
        if self.reader.wants_stamps() {
            self.reader.note_poll(self.now_ns());
        }
        let ready = self.await_ready(timeout_ns)?;
        let mut sends_left = SENDS_PER_POLL;
        for index in 0..ready {
            let event = self.poller.event(index);
            self.handle(event)?;
            self.send_what_came_due(&mut sends_left)?;
        }
        self.send_dirty()
    }

    fn handle(&mut self, event: Ready) -> Result<()> {
        let index = event.token;
        match self.connections[index as usize].phase {
            Phase::Closed | Phase::BetweenConnections => return Ok(()),
            Phase::Connecting { waits } => return self.connected(index, event, waits),
            Phase::TlsHandshake { .. } | Phase::Handshake | Phase::Open => {}
        }
        if event.readable
            && let Err(error) = self.read(index)
        {
            self.lost(index, &error);
            return Ok(());
        }
        if event.writable {
            match self.connections[index as usize].flush() {
                Ok(()) => self.mark_dirty(index),
                Err(error) => self.lost(index, &error),
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, index: u32) -> io::Result<()> {
        let connection = &mut self.connections[index as usize];
        let epoch = self.epoch;
        let mut context = IoContext {
            protocol: self.protocol,
            recorder: &mut self.recorder,
            scratch: &mut self.scratch,
            now: &|| since_ns(epoch),
            wall_ms: self.wall_ms,
        };
        let mut answers = Answers::default();
        let alive = connection.read(&mut self.reader, &mut context, &mut answers);
        let blocked = connection.is_blocked() && !connection.wants_write;
        self.last_received_ns = self.last_received_ns.max(answers.received_ns);
        if blocked {
            self.watch_writability(index).map_err(io::Error::other)?;
            self.note_stuck(index);
        }
        if answers.ready {
            self.ready(index);
        }
        self.shared.add_completed(answers.completed);
        self.outstanding -= answers.answered;
        if answers.answered > 0 {
            self.connections[index as usize].answered_ns = answers.received_ns;
            self.make_room(index, answers.answered);
            self.reopening_answered(index);
        }
        alive?;
        if answers.over {
            self.renew(index);
        }
        Ok(())
    }

    /// Handles a lost connection.
    pub(super) fn lost(&mut self, index: u32, error: &io::Error) {
        let connection = &mut self.connections[index as usize];
        match connection.phase {
            Phase::Closed | Phase::BetweenConnections => return,
            Phase::Connecting { .. } | Phase::TlsHandshake { .. } | Phase::Handshake => {
                return self.opening_failed(index, error);
            }
            Phase::Open if connection.is_renewed() => return self.lost_and_renewed(index, error),
            Phase::Open => {}
        }
        let outstanding = connection.close();
        let exhausted = connection.exhausted;
        self.outstanding -= outstanding;
        self.active -= usize::from(!exhausted && self.active > 0);
        let now_ns = self.now_ns();
        self.first_loss_ns.get_or_insert(now_ns);
        self.recorder.error(&format!("connection lost: {error}"), 1);
        self.recorder.error("outstanding on a lost connection", outstanding as u64);
        self.reopening_lost(index);
    }

    fn close_connections(&mut self) {
        let mut last = Vec::new();
        for connection in self.connections.iter_mut().filter(|c| c.phase == Phase::Open) {
            last.clear();
            self.protocol.close(&mut connection.session, &mut last);
            // The run is over, so a failed send does not matter.
            let _ = connection.send(&last);
        }
    }
}

fn since_ns(epoch: Instant) -> u64 {
    // The conversion wraps after 584 years.
    Instant::now().saturating_duration_since(epoch).as_nanos() as u64
}

/// How a segment ended that was not given up.
pub(super) fn natural_end(now_ns: u64, window: Window) -> Ended {
    if now_ns >= window.until_ns { Ended::Planned } else { Ended::Finished }
}
