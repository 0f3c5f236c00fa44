//! What other threads have for a worker: new connections, connections to end, progress of the store.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use hub::{Progress, ProgressWatcher};
use mio::net::TcpStream;
use mio::{Poll, Token, Waker};
use parking_lot::Mutex;

use super::acks::ConnectionKey;
use super::{Door, limits};

/// The token of a worker's own wake-ups; slots of connections never come near it.
pub(super) const WAKER: Token = Token(usize::MAX);

/// What other threads have for a worker.
pub(super) struct Inbox {
    waker: Waker,
    /// The worker waits for the store; without it progress is no news.
    awaits_progress: AtomicBool,
    /// The worker lets messages gather; progress ends that.
    naps: AtomicBool,
    worker: OnceLock<Thread>,
    letters: Mutex<Letters>,
}

/// A pause of the worker, until it is dropped.
pub(super) struct Nap<'a>(&'a Inbox);

impl Nap<'_> {
    /// Waits for the time to pass or for progress. May end too early.
    pub(super) fn sleep(&self, time: Duration) {
        std::thread::park_timeout(time);
    }
}

impl Drop for Nap<'_> {
    fn drop(&mut self) {
        self.0.naps.store(false, Ordering::Relaxed);
    }
}

/// What came since the worker looked last.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) connections: Vec<(TcpStream, SocketAddr)>,
    pub(super) taken_over: Vec<ConnectionKey>,
}

impl Inbox {
    pub(super) fn wake(&self) {
        // The only failure is a full counter of wake-ups, which is a wake-up.
        drop(self.waker.wake());
    }

    /// Hands a connection over. Waits for room: accepting faster than connections can be taken makes no sense. A door
    /// that stops drops it.
    pub(super) fn add(&self, socket: TcpStream, peer: SocketAddr, door: &Door) {
        while !door.is_stopping() {
            let mut letters = self.letters.lock();
            if letters.connections.len() < limits::INBOX_MAX {
                let was_empty = letters.connections.is_empty();
                letters.connections.push((socket, peer));
                drop(letters);
                if was_empty {
                    self.wake();
                }
                return;
            }
            drop(letters);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn take_over(&self, connection: ConnectionKey) {
        self.letters.lock().taken_over.push(connection);
        self.wake();
    }

    pub(super) fn open(&self) -> Letters {
        std::mem::take(&mut *self.letters.lock())
    }

    /// Says whether progress of the store is news.
    pub(super) fn await_progress(&self, awaits: bool) {
        self.awaits_progress.store(awaits, Ordering::Relaxed);
        // The worker looks at the store's progress next, and the store's thread, having set it, looks at the flag: one
        // of the two must see what the other did, or an ack waits for the next second.
        fence(Ordering::SeqCst);
    }

    /// From now on progress ends the nap of the calling thread, the worker's, instead of waking its poll. Look at the
    /// progress once more before sleeping.
    pub(super) fn begin_nap(&self) -> Nap<'_> {
        self.worker.get_or_init(std::thread::current);
        self.naps.store(true, Ordering::Relaxed);
        // As in `await_progress`.
        fence(Ordering::SeqCst);
        Nap(self)
    }
}

impl ProgressWatcher for Inbox {
    fn progress(&self, _: Progress) {
        // The other half of the fence in `await_progress`.
        fence(Ordering::SeqCst);
        if !self.awaits_progress.load(Ordering::Relaxed) {
            return;
        }
        match self.worker.get() {
            Some(worker) if self.naps.load(Ordering::Relaxed) => worker.unpark(),
            _ => self.wake(),
        }
    }
}

/// What a worker needs before its thread starts.
pub(super) struct Seat {
    pub(super) poll: Poll,
    pub(super) inbox: Arc<Inbox>,
}

impl Seat {
    pub(super) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let inbox = Inbox {
            waker,
            awaits_progress: AtomicBool::new(false),
            naps: AtomicBool::new(false),
            worker: OnceLock::new(),
            letters: Mutex::default(),
        };
        Ok(Self { poll, inbox: Arc::new(inbox) })
    }
}
