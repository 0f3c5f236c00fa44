//! Protocols convert operations into bytes and check the answers. A protocol has no socket and no clock.
//!
//! `mod.rs` has the interface to the event engine, `blocking.rs` that to the thread engine, `choice.rs` the choice of the
//! next operation by weight.

mod blocking;
mod choice;

pub use blocking::{Blocking, Done, Failure};
pub use choice::OperationChoice;

use crate::recorder::Operation;

/// The time at which an operation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTime {
    /// Nanoseconds after the start of the segment.
    pub intended_ns: u64,
    /// The same moment by the wall clock at the start of the run, milliseconds since the epoch. It never goes
    /// backwards.
    pub wall_ms: u64,
    /// When the operation is sent, nanoseconds after the start of the segment.
    pub sent_ns: u64,
}

/// How an answer is matched with its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// By the order of requests.
    InOrder,
    Key(u32),
    /// There is no answer. The operation is complete when the kernel has accepted it.
    None,
    /// Of a completion only: the end of an operation that another connection began, such as the delivery of a message to
    /// a subscriber. Its times count from the start of the segment.
    Delivery(Operation),
}

/// An operation whose request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its class, an index into [`crate::engine::Plan::classes`].
    pub class: u16,
    /// How its answer is matched.
    pub answer: Answer,
}

/// The result of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus<'a> {
    /// The answer is right.
    Good,
    /// The answer is right, with this number of requested items.
    Found {
        /// Items that existed.
        hits: u32,
        /// Items that did not exist.
        misses: u32,
    },
    /// The server refused, or the answer is wrong.
    Failed(&'a str),
}

/// The end of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion<'a> {
    pub answer: Answer,
    pub status: AnswerStatus<'a>,
    /// The size of the answer, bytes.
    pub bytes: u32,
}

/// When a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// As soon as TCP is connected.
    Ready,
    /// After an answer of the server, which [`Protocol::receive`] reports.
    Wait,
}

/// The lifetime of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The whole run. A lost connection stays lost.
    #[default]
    Run,
    /// Until one side closes the connection. The engine opens it again for the next operation.
    Renewed,
    /// As long as an operation. The engine opens the connection when one is due.
    OnDemand,
}

/// The result of [`Protocol::receive`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// The bytes of complete answers. The rest comes again when more has arrived.
    pub used: usize,
    /// Whether the handshake is over.
    pub ready: bool,
    /// Whether the connection has ended in order. The engine repeats operations in flight on the next connection: it
    /// calls [`Protocol::start`] once for each, in their order, and the protocol returns them again.
    pub over: bool,
}

/// A protocol without sockets. All calls of one session come from one thread.
pub trait Protocol: Sync {
    /// The state of a connection. It is also the result of the run: what was sent and acknowledged.
    type Session: Send;

    /// Creates the session of connection `number`, before the connection is opened.
    fn session(&self, number: u32) -> Self::Session;

    /// Appends the first bytes after TCP connect. The engine calls it for every connection of the session.
    fn open(&self, session: &mut Self::Session, out: &mut Vec<u8>) -> Opening;

    /// Tells a session that a load of connects opens its connection now, nanoseconds after the start of the segment.
    fn reopening(&self, _session: &mut Self::Session, _now_ns: u64) {}

    /// The lifetime of the session's connections.
    fn lifetime(&self, _session: &Self::Session) -> Lifetime {
        Lifetime::Run
    }

    /// The largest number of operations in flight. The engine asks when the connection is ready and after each answer.
    fn window(&self, _session: &Self::Session) -> usize {
        usize::MAX
    }

    /// Whether answers of operations on a schedule have no effect but their time. Then the engine may leave them in the
    /// kernel for a short time.
    fn answers_can_wait(&self) -> bool {
        false
    }

    /// Whether connections report [`Answer::Delivery`].
    const DELIVERS: bool = false;

    /// Whether deliveries are outstanding. The engine then waits for them at the end of a load, at most the drain time.
    fn awaits_deliveries(&self) -> bool {
        false
    }

    /// Appends the request of the next operation; `None` if the session has no more operations.
    fn start(&self, session: &mut Self::Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started>;

    /// Parses received bytes, reports every completed operation to `done`, and may append bytes to `out`. An error ends
    /// the connection and gives the reason.
    fn receive(
        &self,
        session: &mut Self::Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String>;

    /// Handles a connection that the server closed. It reports operations that end with it to `done`. `Ok` means an
    /// orderly end, as with [`Received::over`]. Otherwise the operations in flight have failed for the given reason.
    fn closed(
        &self,
        _session: &mut Self::Session,
        _done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        Err("closed by the server".to_owned())
    }

    /// Tells the session that its operations in flight, and those to repeat, have failed.
    fn lost(&self, _session: &mut Self::Session) {}

    /// Restarts the session's random numbers: all sessions with this number and seed draw the same. Counters, such as
    /// sequential keys, continue.
    fn reseed(&self, _session: &mut Self::Session, _seed: u64) {}

    /// The time without sending after which the engine calls [`Self::keep_alive`], nanoseconds; 0 for never.
    fn quiet_ns(&self) -> u64 {
        0
    }

    /// Appends a keep-alive for an idle connection.
    fn keep_alive(&self, _session: &mut Self::Session, _out: &mut Vec<u8>) {}

    /// Appends the bytes that end a connection in order.
    fn close(&self, _session: &mut Self::Session, _out: &mut Vec<u8>) {}
}
