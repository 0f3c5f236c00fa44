//! What an engine is asked to do, whatever the protocol.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::Sustained;
use crate::limits::HANDSHAKE_TIMEOUT_S;
use crate::recorder::Window;
use crate::schedule::Arrivals;

/// What the connections of one group do during a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Operations on a schedule, whatever the server does.
    Open {
        /// Operations per second over all connections of the group.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// They come due at ticks of a timer of this period, microseconds; 0 for at any time.
        timer_us: u32,
        /// Seed of the schedule.
        seed: u64,
    },
    /// Keeps `window` operations in flight on every connection.
    Closed {
        /// Operations in flight per connection.
        window: usize,
        /// How long an operation's place stays empty after its answer.
        pause: Duration,
    },
    /// Stays connected and says nothing but what keeps the connection alive.
    Idle,
    /// Every operation closes a connection and opens it again: from the intended moment to the end of the handshake.
    Reopen {
        /// When they are due.
        when: ReopenTrigger,
        /// How the old connection ends.
        close: Close,
        /// The operation's class in the recorder.
        class: u16,
        /// What becomes of a connection once it is open.
        then: AfterReopen,
    },
    /// One operation on every `every`-th open connection, at even distances over `over`.
    Sample {
        /// 100 for one connection of a hundred; at least one of each thread is asked.
        every: u32,
        /// From the first to the last.
        over: Duration,
    },
}

/// When connections of [`Load::Reopen`] are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReopenTrigger {
    /// On a schedule, whatever the server does.
    Scheduled {
        /// Reopenings per second over all connections of the group.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// Seed of the schedule.
        seed: u64,
    },
    /// Every connection once, all at the same moment.
    Once,
    /// Every connection at once, and again as soon as it is closed: a closed loop, for [`AfterReopen::Answer`].
    Again,
}

impl Load {
    /// Whether it is for answers to make room for operations, and no schedule.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Reopen { when: ReopenTrigger::Again, .. })
    }

    /// Whether something follows from an answer but its time. Such an answer came when it was read: before that the
    /// generator could not go on, and its operation was not over for it.
    pub(crate) fn waits_for_answers(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Idle => false,
            Self::Closed { .. } | Self::Reopen { .. } | Self::Sample { .. } => true,
        }
    }
}

/// What becomes of a connection that [`Load::Reopen`] opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AfterReopen {
    /// It stays open until its turn comes again.
    Keep,
    /// It stays open and its turn never comes again: the load ends when every connection had its turn, or when so many
    /// failed that going on is of no use.
    Stay(Sustained),
    /// It is closed at once, as `close` says.
    Close,
    /// It does one operation and is then closed, as `close` says.
    Answer,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// In order: FIN.
    Fin,
    /// At once: RST.
    Reset,
}

/// A part of a run with its own result; the connections are those of the segment before.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Its name in results.
    pub name: String,
    /// What each group does, in the order of [`Plan::groups`].
    pub loads: Vec<Load>,
    /// Beginning of the load that is not measured.
    pub warmup: Duration,
    /// Measured part. It ends earlier when no session has another operation.
    pub duration: Duration,
    /// Longest wait for outstanding answers after the end of the load.
    pub drain: Duration,
}

impl Segment {
    /// The measured part, after the start of the load.
    pub fn window(&self) -> Window {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let until = self.warmup.saturating_add(self.duration);
        Window { from_ns: nanos(self.warmup), until_ns: nanos(until) }
    }
}

/// How connections are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect {
    /// Whether the first segment opens them, as operations of its load ([`Load::Reopen`]). Otherwise they are opened before
    /// it, and one that cannot be opened ends the run.
    pub by_load: bool,
    /// Longest time of one handshake, from TCP connect to readiness.
    pub timeout: Duration,
    /// After so long without traffic the kernel asks whether the other side is still there (SO_KEEPALIVE).
    pub keep_alive: Option<Duration>,
}

impl Default for Connect {
    fn default() -> Self {
        Self { by_load: false, timeout: Duration::from_secs(HANDSHAKE_TIMEOUT_S), keep_alive: None }
    }
}

/// A run as an engine sees it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect.
    pub target: SocketAddr,
    /// Local addresses to connect from, in turn; empty for the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Connections of each group. Connection numbers go through all groups: those of the first come first.
    pub groups: Vec<u32>,
    /// Names of the operation classes, by class number.
    pub classes: Vec<String>,
    /// Threads.
    pub threads: u32,
    /// Which part of the connections this process has, of how many; `(0, 1)` for all. Every part has as many threads.
    pub part: (u32, u32),
    /// Connections opened per second; `None` for as fast as handshakes end.
    pub open_rate: Option<f64>,
    /// How connections are opened.
    pub connect: Connect,
    /// Open loop: the workers look at sockets and schedule at most this often, microseconds; 0 for at once. What it
    /// adds to a latency is counted in it.
    pub tick_us: u32,
    /// Open loop: for so long before something is due the workers look at their sockets instead of sleeping, microseconds; 0 for
    /// never. For threads of the event engine.
    pub busy_poll_us: u32,
    /// The load is given up when a server says nothing at all for so long although operations are outstanding.
    pub silence: Duration,
    /// What happens once all connections are open.
    pub segments: Vec<Segment>,
}

impl Plan {
    /// Whether a group has a load that waits for no answers.
    pub(crate) fn has_free_answers(&self, group: usize) -> bool {
        self.segments
            .iter()
            .filter_map(|segment| segment.loads.get(group))
            .any(|load| !load.waits_for_answers())
    }

    /// Connections of all groups, those of other processes included.
    pub fn connections(&self) -> u32 {
        self.groups.iter().sum()
    }
}
