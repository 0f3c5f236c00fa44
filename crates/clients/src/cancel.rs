//! The end of a wait: a thread cancels the connections on which another thread waits.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

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
