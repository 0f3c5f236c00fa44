//! Drivers: how the operations of one protocol become bytes, and how its answers are judged. A driver has no socket and
//! no clock.

mod blocking;
pub(crate) mod choice;
pub mod host;
pub mod http;
pub mod ledger;
pub mod mqtt;
pub(crate) mod reads;
pub mod redis;
pub mod sql;
pub mod tcp;

pub use blocking::{Blocking, Breaker, Done, Failure};
pub use choice::Choice;

/// When an operation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTime {
    /// After the start of the segment, nanoseconds.
    pub intended_ns: u64,
    /// The same moment by the wall clock at the start of the run, milliseconds since the epoch. It never goes back.
    pub wall_ms: u64,
}

/// How an answer finds its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Answers come in the order of requests.
    InOrder,
    /// The answer carries this key.
    Key(u32),
    /// There is none; the operation is complete when the kernel has it.
    None,
}

/// An operation whose request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its class, an index into [`crate::engine::Plan::classes`].
    pub class: u16,
    /// How its answer finds it.
    pub answer: Answer,
}

/// What a driver thinks of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus<'a> {
    /// As it should be.
    Good,
    /// As it should be, and so much of what was asked for was there.
    Found {
        /// Things that were there.
        hits: u32,
        /// Things that were not.
        misses: u32,
    },
    /// The server refused or answered something else.
    Failed(&'a str),
}

/// The end of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion<'a> {
    /// Which operation.
    pub answer: Answer,
    /// How it went.
    pub status: AnswerStatus<'a>,
    /// Size of the answer, bytes.
    pub bytes: u32,
}

/// Whether a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// As soon as TCP is connected.
    Ready,
    /// Once the server has answered; [`Protocol::receive`] will say so.
    Wait,
}

/// How long a connection lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the run: once lost it is gone.
    #[default]
    Run,
    /// Until one side ends it; it is opened again for the next operation.
    Renewed,
    /// As long as its operations: it is opened when one is due, and not before.
    OnDemand,
}

/// What [`Protocol::receive`] did with its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes of complete answers; the rest is shown again when more has come.
    pub used: usize,
    /// The handshake is over.
    pub ready: bool,
    /// No other answer comes on this connection, in order. Operations that are still in flight are begun again on the
    /// next: [`Protocol::start`] is called once for each, in their order, and gives them again.
    pub over: bool,
}

/// A protocol without sockets. All calls of one session come from one thread.
pub trait Protocol: Sync {
    /// What is remembered per connection. It is the run's result as well: what was sent, what was acknowledged.
    type Session: Send;

    /// The session of connection `number`, made before it is opened for the first time.
    fn session(&self, number: u32) -> Self::Session;

    /// Appends the first bytes after TCP connect. Called again when the connection is opened again.
    fn open(&self, session: &mut Self::Session, out: &mut Vec<u8>) -> Opening;

    /// How long the session's connections live.
    fn lifetime(&self, _session: &Self::Session) -> Lifetime {
        Lifetime::Run
    }

    /// Operations that may be in flight, asked when the connection is ready and again after each answer.
    fn window(&self, _session: &Self::Session) -> usize {
        usize::MAX
    }

    /// Whether nothing follows from an answer to an operation that came on a schedule but its time: the generator may then
    /// leave it in the kernel for a moment.
    fn answers_can_wait(&self) -> bool {
        false
    }

    /// Appends the next operation's request; `None` when this session has no more to do.
    fn start(&self, session: &mut Self::Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started>;

    /// Takes the bytes that came, reports every completed operation to `done`, may append follow-up bytes to `out`.
    /// An error ends the connection; its text says why.
    fn receive(
        &self,
        session: &mut Self::Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String>;

    /// The server closed the connection. What ends with it is reported to `done`; `Ok` when that is in order, which is
    /// [`Received::over`]. Otherwise what is in flight has failed, and the text says why.
    fn closed(
        &self,
        _session: &mut Self::Session,
        _done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        Err("closed by the server".to_owned())
    }

    /// What was in flight or to be begun again has failed: it is not to be begun again.
    fn lost(&self, _session: &mut Self::Session) {}

    /// From here on the session draws what any session of its number draws after the same seed. What counts on, such as
    /// sequential keys, goes on.
    fn reseed(&self, _session: &mut Self::Session, _seed: u64) {}

    /// After so many nanoseconds without sending, [`Self::keep_alive`] is called; 0 for never.
    fn quiet_ns(&self) -> u64 {
        0
    }

    /// Appends what keeps a quiet connection alive.
    fn keep_alive(&self, _session: &mut Self::Session, _out: &mut Vec<u8>) {}

    /// Appends what ends a connection in order.
    fn close(&self, _session: &mut Self::Session, _out: &mut Vec<u8>) {}
}
