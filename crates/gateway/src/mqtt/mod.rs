//! The MQTT door: MQTT 3.1, 3.1.1 and 5 over TCP, telemetry in, acks after durability.
//!
//! An acceptor thread hands connections to workers; each worker is one thread with one event loop (`worker`) over
//! its share of the sockets. Per turn a worker reads from every ready socket, collects all messages in one batch per
//! durability class, appends it once, and sends acks when the store has come far enough. Nothing is
//! allocated per message, no thread is woken per message, and the only lock is that of the clock that gives rows
//! without a time their time of receipt.
//!
//! What it does not do: deliver messages to devices (subscriptions are refused), retained messages, TLS, WebSocket.

mod acceptor;
mod acks;
mod clients;
mod connection;
mod inbox;
pub mod limits;
mod received;
mod session;
mod turn;
mod worker;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use hub::Hub;
use model::PanicEndsProcess;
use model::limits::Portion;

use clients::Clients;
use inbox::Inbox;

/// What an operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttOptions {
    /// Event-loop threads.
    pub workers: usize,
    /// Most bytes of one packet.
    pub packet_bytes_max: usize,
    /// Most messages of one session that may wait for their ack. MQTT 5 clients are told; from 3.1.1 clients that
    /// send more nothing is read until acks have left.
    pub receive_maximum: u16,
    /// A connection that has not sent CONNECT after this many seconds is closed.
    pub connect_timeout_s: u32,
    /// A packet whose rest does not come within this many seconds of silence closes its connection.
    pub packet_timeout_s: u32,
    /// Longest keep-alive granted to MQTT 5 clients, in seconds; 0 for no bound.
    pub keep_alive_max_s: u16,
    /// Most connections at once.
    pub connections_max: usize,
    /// What of the bounds in bytes that are fixed the machine's memory allows.
    pub memory: Portion,
}

impl Default for MqttOptions {
    fn default() -> Self {
        Self {
            workers: 2,
            packet_bytes_max: 1024 * 1024,
            receive_maximum: 1_024,
            connect_timeout_s: 10,
            packet_timeout_s: 30,
            keep_alive_max_s: 0,
            connections_max: usize::MAX,
            memory: Portion::ALL,
        }
    }
}

impl MqttOptions {
    /// Bytes of packets whose rest has not arrived, over all connections of a worker. Two packets of the largest kind fit.
    fn partial_bytes_max(&self) -> usize {
        self.memory.of(limits::PARTIAL_BYTES_MAX).max(2 * self.packet_bytes_max)
    }

    /// Bytes of wills that wait, per worker.
    fn late_wills_bytes_max(&self) -> usize {
        self.memory.of(limits::LATE_WILLS_BYTES_MAX)
    }

    fn check(&self) -> io::Result<()> {
        let packet = self.packet_bytes_max;
        let (least, most) = (limits::PACKET_BYTES_MIN, limits::PACKET_BYTES_MAX);
        let fault = if !(least..=most).contains(&packet) {
            format!("packet_bytes_max is {packet}, it must be from {least} to {most}")
        } else if self.receive_maximum == 0 {
            "receive_maximum is 0, it must be at least 1".into()
        } else if self.workers > usize::from(u16::MAX) {
            format!("workers is {}, it must be at most {}", self.workers, u16::MAX)
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, fault))
    }
}

/// What the threads of a door share.
struct Door {
    hub: Arc<Hub>,
    options: MqttOptions,
    clients: Clients,
    inboxes: Vec<Arc<Inbox>>,
    connections: AtomicUsize,
    stopping: AtomicBool,
    opened: Instant,
}

impl Door {
    fn now_s(&self) -> u32 {
        u32::try_from(self.opened.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// A running MQTT door.
#[derive(Debug)]
pub struct MqttDoor {
    local_address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Keeps `Debug` of the handle short.
struct Shared {
    door: Arc<Door>,
    acceptor: mio::Waker,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl MqttDoor {
    /// Starts serving `listener`.
    ///
    /// # Errors
    /// An option is outside of its bounds, or the system has no thread or descriptor left.
    pub fn start(hub: Arc<Hub>, listener: TcpListener, options: MqttOptions) -> io::Result<Self> {
        options.check()?;
        let local_address = listener.local_addr()?;
        let mut seats = Vec::new();
        for _ in 0..options.workers.max(1) {
            seats.push(inbox::Seat::new()?);
        }
        let inboxes = seats.iter().map(|seat| Arc::clone(&seat.inbox)).collect();
        let door = Arc::new(Door {
            hub,
            options,
            clients: Clients::default(),
            inboxes,
            connections: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            opened: Instant::now(),
        });
        let mut threads = Vec::new();
        for (index, seat) in seats.into_iter().enumerate() {
            door.hub.watch(Arc::clone(&seat.inbox) as Arc<dyn hub::ProgressWatcher>);
            let door = Arc::clone(&door);
            let thread = std::thread::Builder::new().name(format!("mqtt-{index}"));
            threads.push(thread.spawn(move || {
                let _guard = PanicEndsProcess::begin();
                worker::Worker::new(door, index, seat).run();
            })?);
        }
        let (acceptor, waker) = acceptor::Acceptor::new(Arc::clone(&door), listener)?;
        threads.push(std::thread::Builder::new().name("mqtt-accept".into()).spawn(move || {
            let _guard = PanicEndsProcess::begin();
            acceptor.run();
        })?);
        Ok(Self { local_address, shared: Arc::new(Shared { door, acceptor: waker }), threads })
    }

    /// Where the door listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Stops accepting and reading, sends the acks of what was read once it is durable, tells MQTT 5 clients that the
    /// server shuts down (0x8B), and closes all connections.
    pub fn stop(self) {
        self.shared.door.stopping.store(true, Ordering::Release);
        // A failed wake-up only delays: every loop looks at least once a second.
        drop(self.shared.acceptor.wake());
        for inbox in &self.shared.door.inboxes {
            inbox.wake();
        }
        for thread in self.threads {
            // None has panicked: that ends the process.
            let _ = thread.join();
        }
    }
}
