//! A limit on the number of connections that are opened at a time.

use parking_lot::{Condvar, Mutex};

use crate::limits::HANDSHAKES_MAX;

/// Allows as many opens at a time as fit into the accept backlog of a server.
#[derive(Debug)]
pub(super) struct OpenLimiter {
    free: Mutex<usize>,
    freed: Condvar,
}

impl OpenLimiter {
    pub(super) fn new() -> Self {
        Self { free: Mutex::new(HANDSHAKES_MAX), freed: Condvar::new() }
    }

    /// Runs an action when fewer than the limit are running.
    pub(super) fn run<T>(&self, action: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        drop(free);
        let done = action();
        *self.free.lock() += 1;
        self.freed.notify_one();
        done
    }
}
