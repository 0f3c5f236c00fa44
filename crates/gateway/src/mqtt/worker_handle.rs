//! The handle through which other threads reach a worker: commands, and progress of the store.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use hub::wake::Wake;
use hub::{KvProgress, KvProgressWatcher, Progress, ProgressWatcher};
use mio::Waker;
use mio::net::TcpStream;
use parking_lot::Mutex;

use super::acks::ConnectionKey;
use super::entry::Entry;
use super::limits;
use super::transport::Layers;

/// The handle of a worker for other threads.
pub(super) struct WorkerHandle {
    waker: Waker,
    /// The worker waits for progress of the store. Otherwise progress does not wake it.
    awaits_progress: AtomicBool,
    /// The worker is parked to let messages gather. Progress unparks it.
    parked: AtomicBool,
    thread: OnceLock<Thread>,
    commands: Mutex<Commands>,
    /// The worker looks for deliveries before it waits, so they need not wake it.
    awake: AtomicBool,
    deliveries: Mutex<Vec<ConnectionKey>>,
}

/// Wakes the worker of a connection for messages that wait for it.
pub(super) struct ConnectionWake {
    handle: Arc<WorkerHandle>,
    key: ConnectionKey,
}

impl ConnectionWake {
    pub(super) fn new(handle: Arc<WorkerHandle>, key: ConnectionKey) -> Self {
        Self { handle, key }
    }
}

impl Wake for ConnectionWake {
    fn wake(&self) {
        self.handle.deliver(self.key);
    }
}

/// While it lives, progress unparks the worker's thread instead of waking its poll.
pub(super) struct ParkGuard<'a>(&'a WorkerHandle);

impl ParkGuard<'_> {
    /// Parks the thread for `time` or until progress. It may return early.
    pub(super) fn park(&self, time: Duration) {
        std::thread::park_timeout(time);
    }
}

impl Drop for ParkGuard<'_> {
    fn drop(&mut self) {
        self.0.parked.store(false, Ordering::Relaxed);
    }
}

/// An accepted connection.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) socket: TcpStream,
    pub(super) peer: SocketAddr,
    /// The peer is a load balancer, and the connection begins with a header of the PROXY protocol.
    pub(super) is_proxied: bool,
    /// The part after that header.
    pub(super) layers: Layers,
    pub(super) entry: Entry,
}

/// Commands that the worker has not taken yet.
#[derive(Default)]
pub(super) struct Commands {
    /// New connections.
    pub(super) connections: Vec<AcceptedSocket>,
    /// Connections to close because another one uses their client identifier.
    pub(super) taken_over: Vec<ConnectionKey>,
}

impl WorkerHandle {
    /// Ends the poll of the worker.
    pub(super) fn wake(&self) {
        // It fails only if the counter of wake-ups is full, and then the worker wakes anyway.
        drop(self.waker.wake());
    }

    /// Hands a connection over. Waits while too many connections wait for the worker. Drops the connection if the door stops.
    pub(super) fn add(&self, accepted: AcceptedSocket, is_stopping: impl Fn() -> bool) {
        let mut waiting = Some(accepted);
        while let Some(accepted) = waiting.take_if(|_| !is_stopping()) {
            waiting = self.try_add(accepted).err().map(|accepted| {
                std::thread::sleep(Duration::from_millis(1));
                *accepted
            });
        }
    }

    /// Hands a connection over, unless too many connections wait for the worker.
    pub(super) fn try_add(&self, accepted: AcceptedSocket) -> Result<(), Box<AcceptedSocket>> {
        let mut commands = self.commands.lock();
        if commands.connections.len() >= limits::WORKER_CONNECTIONS_WAITING_MAX {
            return Err(Box::new(accepted));
        }
        let was_empty = commands.connections.is_empty();
        commands.connections.push(accepted);
        drop(commands);
        if was_empty {
            self.wake();
        }
        Ok(())
    }

    /// Closes a connection whose client identifier another connection has taken over.
    pub(super) fn take_over(&self, connection: ConnectionKey) {
        self.commands.lock().taken_over.push(connection);
        self.wake();
    }

    pub(super) fn take_commands(&self) -> Commands {
        std::mem::take(&mut *self.commands.lock())
    }

    /// Messages wait for a connection.
    fn deliver(&self, key: ConnectionKey) {
        self.deliveries.lock().push(key);
        // The other half of the fence in `sleeps`.
        fence(Ordering::SeqCst);
        if !self.awake.load(Ordering::Relaxed) {
            self.rouse();
        }
    }

    /// Takes the connections for which messages wait.
    pub(super) fn take_deliveries(&self) -> Vec<ConnectionKey> {
        std::mem::take(&mut *self.deliveries.lock())
    }

    /// Whether messages wait for a connection.
    pub(super) fn has_deliveries(&self) -> bool {
        !self.deliveries.lock().is_empty()
    }

    /// From now on deliveries wake the worker. It looks for those that came before, and then waits.
    pub(super) fn sleeps(&self) {
        self.awake.store(false, Ordering::Relaxed);
        // As in `await_progress`.
        fence(Ordering::SeqCst);
    }

    /// The worker has ended its wait. It takes all deliveries before the next one.
    pub(super) fn is_awake(&self) {
        self.awake.store(true, Ordering::Relaxed);
    }

    /// Ends the wait of the worker, in its poll or parked.
    fn rouse(&self) {
        match self.thread.get() {
            Some(thread) if self.parked.load(Ordering::Relaxed) => thread.unpark(),
            _ => self.wake(),
        }
    }

    /// Sets whether progress of the store wakes the worker.
    pub(super) fn await_progress(&self, awaits: bool) {
        self.awaits_progress.store(awaits, Ordering::Relaxed);
        // The worker reads the store's progress next. The store's thread sets the progress and then reads this flag. The
        // fence makes sure that one of the two sees the change of the other; otherwise an ack would wait for a second.
        fence(Ordering::SeqCst);
    }

    /// Prepares to park the calling thread, which must be the worker's: from now on progress unparks it. Check the progress
    /// once more before parking.
    pub(super) fn prepare_park(&self) -> ParkGuard<'_> {
        self.thread.get_or_init(std::thread::current);
        self.parked.store(true, Ordering::Relaxed);
        // As in `await_progress`.
        fence(Ordering::SeqCst);
        ParkGuard(self)
    }
}

impl WorkerHandle {
    /// A handle that wakes the worker through `waker`.
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            waker,
            awaits_progress: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            thread: OnceLock::new(),
            commands: Mutex::default(),
            awake: AtomicBool::new(true),
            deliveries: Mutex::default(),
        }
    }
}

impl WorkerHandle {
    fn on_progress(&self) {
        // The other half of the fence in `await_progress`.
        fence(Ordering::SeqCst);
        if self.awaits_progress.load(Ordering::Relaxed) {
            self.rouse();
        }
    }
}

impl ProgressWatcher for WorkerHandle {
    fn progress(&self, _: Progress) {
        self.on_progress();
    }
}

impl KvProgressWatcher for WorkerHandle {
    fn progress(&self, _: KvProgress) {
        self.on_progress();
    }
}
