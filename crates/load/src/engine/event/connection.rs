//! The state of one connection: operations that wait, operations in flight, and bytes that the kernel did not accept.
//! The connection makes the socket calls. The worker decides when to send.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;

use clients::tls::TlsSession;

use crate::limits::IN_FLIGHT_MAX;
use crate::protocol::{Answer, DueTime, Lifetime, Protocol};
use crate::recorder::{Operation, Recorder};

/// Bytes rendered before they are handed to the kernel.
const SEND_BYTES: usize = 64 * 1024;

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A TCP connect is in progress. With `waits`, a handshake of the protocol follows it.
    Connecting { waits: bool },
    /// The TLS handshake is in progress. With `waits`, one of the protocol follows it.
    TlsHandshake { waits: bool },
    /// The first bytes are sent, and the server has not answered yet.
    Handshake,
    /// Ready for operations.
    Open,
    /// A connection with a renewing [`Lifetime`] is closed. The worker opens it when the next operation is due.
    BetweenConnections,
    /// The connection was never opened, or was lost, refused or closed.
    Closed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) operation: Operation,
    pub(super) key: u32,
}

/// The parts of a worker that a connection needs to send and receive.
pub(super) struct IoContext<'t, P> {
    pub(super) protocol: &'t P,
    pub(super) recorder: &'t mut Recorder,
    /// A buffer that all connections share.
    pub(super) scratch: &'t mut Vec<u8>,
    /// Nanoseconds since the start of the segment.
    pub(super) now: &'t dyn Fn() -> u64,
    /// The start of the segment by the wall clock, milliseconds since the epoch.
    pub(super) wall_ms: u64,
}

impl<P> IoContext<'_, P> {
    pub(super) fn due(&self, intended_ns: u64, sent_ns: u64) -> DueTime {
        DueTime { intended_ns, wall_ms: self.wall_ms + intended_ns / 1_000_000, sent_ns }
    }

    pub(super) fn now_ns(&self) -> u64 {
        (self.now)()
    }
}

/// The operations that one send began or finished.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendCounts {
    /// Operations of a closed loop that were begun.
    pub(super) begun: usize,
    /// Operations complete without an answer.
    pub(super) at_once: usize,
    /// Operations that were due, but for which the session has no more work.
    pub(super) withdrawn: usize,
}

#[derive(Debug)]
pub(super) struct Connection<S> {
    /// The number of the connection among those of all workers.
    pub(super) number: u32,
    pub(super) session: S,
    pub(super) lifetime: Lifetime,
    pub(super) stream: Option<TcpStream>,
    /// TLS over the stream; `None` without TLS.
    pub(super) tls: Option<TlsSession>,
    pub(super) phase: Phase,
    /// Whether the worker's list of connections with bytes to send contains this one.
    pub(super) dirty: bool,
    /// Whether the poller reports writability.
    pub(super) wants_write: bool,
    /// Whether answers have the kernel's timestamps. Without them the time of reading counts.
    pub(super) by_kernel: bool,
    /// The session has no more operations.
    pub(super) exhausted: bool,
    pub(super) last_sent_ns: u64,
    /// The time of the latest answer to an operation of this segment; 0 without one.
    pub(super) answered_ns: u64,
    /// Start of the handshake.
    pub(super) began_ns: u64,
    /// The worker is opening the connection again for operations that are due.
    pub(super) renewing: bool,
    /// The operation that opens this connection again.
    pub(super) reopening: Option<Operation>,
    /// Operations that a closed loop may begin now.
    pub(super) credits: usize,
    pub(super) window: usize,
    /// Whether an operation is due that neither the window nor the kernel accepts.
    pub(super) held: bool,
    /// The end of the latest such wait. Operations that were due before it could not have been sent earlier.
    pub(super) able_ns: u64,
    /// The time at which a connection that has carried nothing yet was begun. Its first operation counts from then.
    pub(super) opened_from_ns: Option<u64>,
    pub(super) in_flight: VecDeque<InFlight>,
    /// Operations to send again: their connection was closed in order before they were answered.
    pub(super) again: VecDeque<Operation>,
    /// Intended times of the operations of an open loop that are due and not sent.
    pub(super) waiting: VecDeque<u64>,
    /// The unparsed start of an answer.
    pub(super) inbound: Vec<u8>,
    /// Bytes that the kernel did not accept.
    pub(super) outbound: Vec<u8>,
}

impl<S> Connection<S> {
    pub(super) fn new(number: u32, session: S, lifetime: Lifetime) -> Self {
        Self {
            number,
            session,
            lifetime,
            stream: None,
            tls: None,
            phase: Phase::Closed,
            dirty: false,
            wants_write: false,
            by_kernel: false,
            exhausted: false,
            last_sent_ns: 0,
            answered_ns: 0,
            began_ns: 0,
            renewing: false,
            reopening: None,
            credits: 0,
            window: IN_FLIGHT_MAX,
            held: false,
            able_ns: 0,
            opened_from_ns: None,
            in_flight: VecDeque::new(),
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            inbound: Vec::new(),
            outbound: Vec::new(),
        }
    }

    /// Takes a new stream, which is not connected yet, and the first bytes to send.
    /// With `tls`, they wait for the end of its handshake.
    pub(super) fn begin(
        &mut self,
        stream: TcpStream,
        tls: Option<TlsSession>,
        waits: bool,
        first: Vec<u8>,
        now_ns: u64,
    ) {
        self.stream = Some(stream);
        self.tls = tls;
        self.phase = Phase::Connecting { waits };
        self.outbound = first;
        if let Some(tls) = &mut self.tls {
            // Writing to memory succeeds.
            let _ = tls.encrypt(&std::mem::take(&mut self.outbound));
        }
        self.inbound.clear();
        self.wants_write = true;
        self.began_ns = now_ns;
    }

    /// Marks the connection as ready for operations, at most `window` of them in flight.
    pub(super) fn open(&mut self, window: usize) {
        self.phase = Phase::Open;
        self.window = IN_FLIGHT_MAX.min(window);
    }

    /// Closes the stream. Returns the number of operations that are lost with it.
    pub(super) fn close(&mut self) -> usize {
        let outstanding = self.outstanding();
        self.phase = Phase::Closed;
        self.end_stream();
        self.in_flight.clear();
        self.again.clear();
        self.waiting.clear();
        self.inbound.clear();
        self.outbound.clear();
        self.credits = 0;
        self.held = false;
        outstanding
    }

    /// Drops the stream. With TLS, the client first sends `close_notify`.
    pub(super) fn end_stream(&mut self) {
        if let (Some(tls), Some(mut stream)) = (&mut self.tls, self.stream.as_ref())
            && !tls.is_handshaking()
        {
            tls.close(&mut stream);
        }
        (self.stream, self.tls) = (None, None);
    }

    /// Resets the times for a new segment. `by_kernel` chooses the source of the times of answers.
    pub(super) fn begin_segment(&mut self, by_kernel: bool) {
        self.by_kernel = by_kernel;
        self.last_sent_ns = 0;
        self.answered_ns = 0;
        self.able_ns = 0;
        self.began_ns = 0;
        self.opened_from_ns = None;
        self.held = false;
    }

    /// Adds an operation that is due since `intended_ns`.
    pub(super) fn enqueue(&mut self, intended_ns: u64) {
        self.waiting.push_back(intended_ns);
    }

    /// The number of operations that are due or sent, and not answered.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len() + self.again.len() + self.in_flight.len()
    }

    /// The number of operations that are sent and not answered.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len() + self.again.len()
    }

    /// Whether an operation could be begun if the window had room.
    pub(super) fn has_to_send(&self) -> bool {
        !self.waiting.is_empty() || self.credits > 0 || !self.again.is_empty()
    }

    /// Whether the window takes all that is to be sent.
    pub(super) fn has_room_for_all(&self) -> bool {
        self.outstanding() + self.credits <= self.window
    }

    /// Whether bytes wait for the socket to become writable.
    pub(super) fn is_blocked(&self) -> bool {
        !self.outbound.is_empty() || self.tls.as_ref().is_some_and(TlsSession::wants_write)
    }

    /// Sends what is due, as far as the window and the kernel allow. `counts` is also right after an error.
    pub(super) fn pump<P: Protocol<Session = S>>(
        &mut self,
        context: &mut IoContext<'_, P>,
        counts: &mut SendCounts,
    ) -> io::Result<()> {
        self.flush()?;
        while !self.is_blocked() && self.has_to_send() && self.in_flight.len() < self.window {
            context.scratch.clear();
            self.render_due(context, counts);
            if context.scratch.is_empty() {
                break;
            }
            self.send(context.scratch)?;
        }
        self.held = !self.waiting.is_empty();
        Ok(())
    }

    fn render_due<P: Protocol<Session = S>>(
        &mut self,
        context: &mut IoContext<'_, P>,
        counts: &mut SendCounts,
    ) {
        let now_ns = context.now_ns();
        self.last_sent_ns = now_ns;
        if std::mem::take(&mut self.held) {
            self.able_ns = now_ns;
        }
        self.render_repeats(context, now_ns, counts);
        while context.scratch.len() < SEND_BYTES && self.in_flight.len() < self.window {
            let begun_ns = self.opened_from_ns.take().unwrap_or(now_ns);
            let (intended_ns, is_credit) = match self.waiting.pop_front() {
                Some(intended_ns) => (intended_ns, false),
                None if self.credits > 0 => (begun_ns, true),
                None => {
                    self.opened_from_ns = (begun_ns != now_ns).then_some(begun_ns);
                    return;
                }
            };
            let before = context.scratch.len();
            let due = context.due(intended_ns, now_ns);
            let Some(started) = context.protocol.start(&mut self.session, due, context.scratch) else {
                self.exhaust(context.recorder, counts, (!is_credit).then_some(intended_ns));
                return;
            };
            if is_credit {
                self.credits -= 1;
                counts.begun += 1;
                context.recorder.planned(intended_ns);
            }
            let operation =
                Operation { class: started.class, intended_ns, sent_ns: begun_ns.max(intended_ns) };
            let able_ns = intended_ns.max(self.able_ns);
            context.recorder.sent_when_able(&operation, able_ns, (context.scratch.len() - before) as u64);
            if begun_ns != now_ns {
                // The operations after the first one of a new connection waited for it.
                self.able_ns = now_ns;
            }
            if started.answer == Answer::None {
                context.recorder.completed(&operation, now_ns, 0);
                counts.at_once += 1;
            } else {
                self.carry(operation, started.answer);
            }
        }
    }

    /// Records an operation that was written and awaits its answer.
    pub(super) fn carry(&mut self, operation: Operation, answer: Answer) {
        let key = match answer {
            Answer::Key(key) => key,
            Answer::InOrder | Answer::None | Answer::Delivery(_) => 0,
        };
        self.in_flight.push_back(InFlight { operation, key });
    }

    /// Notes that the session has no more operations, and takes what was due out of the plan.
    fn exhaust(&mut self, recorder: &mut Recorder, counts: &mut SendCounts, taken_ns: Option<u64>) {
        self.exhausted = true;
        self.credits = 0;
        for intended_ns in taken_ns.into_iter().chain(self.waiting.drain(..)) {
            recorder.withdrawn(intended_ns);
            counts.withdrawn += 1;
        }
    }

    /// Sends bytes and keeps those that the kernel does not accept.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut stream) = self.stream.as_ref() else { return Ok(()) };
        if let Some(tls) = &mut self.tls {
            tls.encrypt(bytes)?;
            return tls.flush_to(&mut stream);
        }
        let taken = if self.is_blocked() { 0 } else { write_some(stream, bytes)? };
        self.outbound.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Sends the bytes that were kept.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.is_blocked()
            && let Some(mut stream) = self.stream.as_ref()
        {
            if let Some(tls) = &mut self.tls {
                return tls.flush_to(&mut stream);
            }
            let taken = write_some(stream, &self.outbound)?;
            self.outbound.drain(..taken);
            if self.outbound.is_empty() {
                // A thousand idle connections must not each keep a buffer of the size of their handshake.
                self.outbound = Vec::new();
            }
        }
        Ok(())
    }
}

fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Ok(count) => Ok(count),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        Err(e) => Err(e),
    }
}
