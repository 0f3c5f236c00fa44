//! The plan of a run, independent of the protocol.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clients::tls::TlsClient;

use super::FailureRule;
use crate::limits::HANDSHAKE_TIMEOUT_S;
use crate::recorder::Window;
use crate::schedule::Arrivals;

/// What the connections of one group do during a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// An open loop: operations on a schedule, independent of the server.
    Open {
        /// Operations per second over all connections of the group.
        rate: f64,
        /// The distribution of the arrivals.
        arrivals: Arrivals,
        /// The period of a timer at whose ticks operations come due, microseconds; 0 without a timer.
        timer_us: u32,
        /// Seed of the schedule.
        seed: u64,
    },
    /// A closed loop: keeps `window` operations in flight on every connection.
    Closed {
        /// Operations in flight per connection.
        window: usize,
        /// The pause between an answer and the next operation.
        pause: Duration,
    },
    /// Stays connected and sends only keep-alives.
    Idle,
    /// Every operation closes a connection and opens it again. It lasts from the intended moment to the end of the
    /// handshake.
    Reopen {
        /// When reopenings are due.
        when: ReopenTrigger,
        /// How the old connection is closed.
        close: Close,
        /// The operation's class in the recorder.
        class: u16,
        /// What follows when the connection is open.
        then: AfterReopen,
    },
    /// One operation on every `every`-th open connection, evenly spread over `over`.
    Sample {
        /// 100 for one connection in a hundred. Each thread samples at least one.
        every: u32,
        /// The time from the first operation to the last.
        over: Duration,
    },
}

/// When the connections of [`Load::Reopen`] are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReopenTrigger {
    /// On a schedule, independent of the server.
    Scheduled {
        /// Reopenings per second over all connections of the group.
        rate: f64,
        /// The distribution of the arrivals.
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
    /// Whether answers and not a schedule allow the next operation.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Reopen { when: ReopenTrigger::Again, .. })
    }

    /// Whether the load reacts to an answer. Then the time of reading counts as the time of the answer: before it the
    /// generator could not continue.
    pub(crate) fn waits_for_answers(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Idle => false,
            Self::Closed { .. } | Self::Reopen { .. } | Self::Sample { .. } => true,
        }
    }
}

/// What follows when [`Load::Reopen`] has opened a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AfterReopen {
    /// The connection stays open until it is reopened again.
    Keep,
    /// The connection stays open and is not reopened again. The load ends when every connection was reopened, or when
    /// too many attempts failed.
    Stay(FailureRule),
    /// The connection is closed at once, as `close` says.
    Close,
    /// The connection carries one operation and is then closed, as `close` says.
    Answer,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// In order, with FIN.
    Fin,
    /// At once, with RST.
    Reset,
}

/// A part of a run with its own result, on the connections of the segment before.
#[derive(Debug, Clone)]
pub struct Segment {
    /// The name in results.
    pub name: String,
    /// The load of each group, in the order of [`Plan::groups`].
    pub loads: Vec<Load>,
    /// The first part of the load, which is not measured.
    pub warmup: Duration,
    /// The measured part. It ends earlier when no session has more operations.
    pub duration: Duration,
    /// Longest wait for outstanding answers after the end of the load.
    pub drain: Duration,
}

impl Segment {
    /// The measured part, relative to the start of the load.
    pub fn window(&self) -> Window {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let until = self.warmup.saturating_add(self.duration);
        Window { from_ns: nanos(self.warmup), until_ns: nanos(until) }
    }
}

/// How connections are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect {
    /// Whether the first segment opens the connections as operations of its load ([`Load::Reopen`]). Otherwise the
    /// engine opens them before the first segment, and a failure ends the run.
    pub by_load: bool,
    /// The largest number of handshakes that a load has under way in each thread. Others wait.
    pub at_once: usize,
    /// The longest handshake, from TCP connect to readiness.
    pub timeout: Duration,
    /// The time without traffic after which the kernel probes the other side (SO_KEEPALIVE).
    pub keep_alive: Option<Duration>,
}

impl Default for Connect {
    fn default() -> Self {
        Self {
            by_load: false,
            at_once: usize::MAX,
            timeout: Duration::from_secs(HANDSHAKE_TIMEOUT_S),
            keep_alive: None,
        }
    }
}

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The address to connect to.
    pub target: SocketAddr,
    /// Groups that connect to another address.
    pub elsewhere: Vec<(usize, SocketAddr)>,
    /// TLS of every connection; `None` without TLS. Its handshake is a part of opening a connection.
    pub tls: Option<TlsClient>,
    /// The local addresses to connect from, in turn; empty for the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// The number of connections of each group. Connection numbers run through all groups, in order.
    pub groups: Vec<u32>,
    /// Names of the operation classes, by class number.
    pub classes: Vec<String>,
    pub threads: u32,
    /// The part of the connections that this process has: its index and the number of parts; `(0, 1)` for all. Every
    /// part has the same number of threads.
    pub part: (u32, u32),
    /// The number of connections to open per second; `None` for as fast as handshakes finish.
    pub open_rate: Option<f64>,
    /// How connections are opened.
    pub connect: Connect,
    /// In an open loop, the shortest time between two polls of a worker, microseconds; 0 to poll at once. Latencies
    /// contain the added wait.
    pub tick_us: u32,
    /// In an open loop, the time before a due operation during which a worker polls instead of sleeping, microseconds;
    /// 0 for never. Only the event engine supports it.
    pub busy_poll_us: u32,
    /// The engine gives up the load when the server sends nothing for this long while operations are outstanding.
    pub silence: Duration,
    /// The segments that run once all connections are open.
    pub segments: Vec<Segment>,
}

impl Plan {
    /// Whether a group has a load that does not wait for answers.
    pub(crate) fn has_free_answers(&self, group: usize) -> bool {
        self.segments
            .iter()
            .filter_map(|segment| segment.loads.get(group))
            .any(|load| !load.waits_for_answers())
    }

    /// The address of a group.
    pub(crate) fn target_of(&self, group: usize) -> SocketAddr {
        self.elsewhere.iter().find(|(known, _)| *known == group).map_or(self.target, |(_, address)| *address)
    }

    /// The same plan with TLS on every connection, if the target has it.
    #[must_use]
    pub fn over(self, tls: Option<TlsClient>) -> Self {
        Self { tls, ..self }
    }

    /// The number of connections of all groups, including those of other processes.
    pub fn connections(&self) -> u32 {
        self.groups.iter().sum()
    }
}
