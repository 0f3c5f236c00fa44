//! Drivers with a blocking client: one thread carries out one operation at a time. Used for SQL, where an operation is
//! an exchange of several messages, and for the machine itself.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::DueTime;

/// Cancels the waits of a session from another thread: it shuts the session's connections down. A thread that waits on
/// one of them gets an error.
#[derive(Debug, Clone, Default)]
pub struct CancelHandle(Arc<Mutex<Sockets>>);

/// The sockets of a session. A socket that the session has dropped is gone here too.
#[derive(Debug, Default)]
struct Sockets {
    open: Vec<Weak<TcpStream>>,
    is_cancelled: bool,
}

impl CancelHandle {
    /// A handle for a session with one socket.
    pub fn new(stream: &Arc<TcpStream>) -> Self {
        let handle = Self::default();
        handle.add(stream);
        handle
    }

    /// Adds a socket that the session has opened.
    pub fn add(&self, stream: &Arc<TcpStream>) {
        let mut sockets = self.0.lock();
        sockets.open.retain(|known| known.strong_count() > 0);
        sockets.open.push(Arc::downgrade(stream));
    }

    /// Shuts the connections down.
    pub fn cancel(&self) {
        let mut sockets = self.0.lock();
        sockets.is_cancelled = true;
        for stream in sockets.open.iter().filter_map(Weak::upgrade) {
            // The socket may already be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether [`Self::cancel`] was called: the session opens no further connection.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().is_cancelled
    }
}

/// A completed operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Requested items that existed.
    pub hits: u32,
    /// Requested items that did not exist.
    pub misses: u32,
    /// Bytes of requests.
    pub bytes_out: u64,
    /// Bytes of answers.
    pub bytes_in: u64,
}

/// An operation that did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server refused, and the connection can be used.
    Refused(String),
    /// The server refused for now. The engine repeats the operation at once, and the time of all attempts counts.
    Again(String),
    /// The connection cannot be used any more.
    Lost(String),
}

/// A blocking client. All calls for one session come from one thread.
pub trait Blocking: Sync {
    /// A connection and its state.
    type Session: Send;

    /// Opens connection `number`. The error gives the reason and a remedy.
    fn open(&self, number: u32) -> Result<Self::Session, String>;

    /// Opens a lost connection again.
    fn reopen(&self, session: &mut Self::Session) -> Result<(), String>;

    /// The cancel handle of a session; `None` if the session never waits for long.
    fn cancel_handle(&self, session: &Self::Session) -> Option<CancelHandle>;

    /// The class of the next operation, an index into [`crate::engine::Plan::classes`]; `None` if the session has no
    /// more operations.
    fn next(&self, session: &mut Self::Session) -> Option<u16>;

    /// Carries out one operation of a class.
    fn run(&self, session: &mut Self::Session, class: u16, due: DueTime) -> Result<Done, Failure>;

    /// Checks the answer of the latest operation. The time of the check is not part of the operation. An error means
    /// that the operation failed.
    fn check(&self, _session: &mut Self::Session) -> Result<(), String> {
        Ok(())
    }

    /// Restarts the session's random numbers: all sessions with this number and seed draw the same. Counters continue.
    fn reseed(&self, _session: &mut Self::Session, _seed: u64) {}

    /// Ends the session in order.
    fn close(&self, session: &mut Self::Session);
}
