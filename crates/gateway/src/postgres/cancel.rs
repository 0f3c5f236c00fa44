//! Cancels queries: a second connection names a session by process number and secret, and the running query of that session
//! ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

/// The sessions that can be cancelled, by process number.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    last: i32,
    known: HashMap<i32, (i32, Arc<Signal>)>,
}

#[derive(Debug, Default)]
struct Signal {
    asked: AtomicBool,
    wake: Notify,
}

/// The registration of a session, until this is dropped.
#[derive(Debug)]
pub(super) struct CancelHandle {
    cancels: Arc<Cancels>,
    signal: Arc<Signal>,
    pub(super) process: i32,
    pub(super) secret: i32,
}

impl Cancels {
    /// Registers a session with a process number and a secret that only its client gets.
    pub(super) fn register(self: &Arc<Self>) -> CancelHandle {
        let random = Uuid::new_v4().into_bytes();
        // The first bytes of such a UUID are random; later ones hold its version.
        let secret = i32::from_be_bytes([random[0], random[1], random[2], random[3]]);
        let signal = Arc::new(Signal::default());
        let mut sessions = self.sessions.lock();
        loop {
            sessions.last = if sessions.last == i32::MAX { 1 } else { sessions.last + 1 };
            let process = sessions.last;
            if let Entry::Vacant(vacant) = sessions.known.entry(process) {
                vacant.insert((secret, Arc::clone(&signal)));
                return CancelHandle { cancels: Arc::clone(self), signal, process, secret };
            }
        }
    }

    /// Cancels the running query of a session, if the secret is right. It returns no result, as in PostgreSQL.
    pub(super) fn ask(&self, process: i32, secret: i32) {
        let sessions = self.sessions.lock();
        if let Some((_, signal)) = sessions.known.get(&process).filter(|(known, _)| *known == secret) {
            signal.asked.store(true, Ordering::Release);
            signal.wake.notify_waiters();
        }
    }
}

impl CancelHandle {
    /// Clears a request that arrived while no query ran.
    pub(super) fn begin(&self) {
        self.signal.asked.store(false, Ordering::Release);
    }

    /// Returns when the client cancels, or has cancelled since the last [`begin`](Self::begin).
    pub(super) async fn asked(&self) {
        let woken = self.signal.wake.notified();
        tokio::pin!(woken);
        // Listens before it checks, so it cannot miss a request.
        woken.as_mut().enable();
        if !self.signal.asked.load(Ordering::Acquire) {
            woken.await;
        }
    }
}

impl Drop for CancelHandle {
    fn drop(&mut self) {
        self.cancels.sessions.lock().known.remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_the_secret_cancels_and_only_running_queries() {
        let cancels = Arc::new(Cancels::default());
        let (one, two) = (cancels.register(), cancels.register());
        assert_ne!(one.process, two.process);
        one.begin();
        cancels.ask(one.process, one.secret.wrapping_add(1));
        assert!(one.asked().now_or_never().is_none());
        cancels.ask(one.process, one.secret);
        one.asked().await;
        assert!(two.asked().now_or_never().is_none());
        one.begin();
        assert!(one.asked().now_or_never().is_none(), "the next query is not meant");
        let process = two.process;
        drop(two);
        cancels.ask(process, 0);
        assert_eq!(cancels.sessions.lock().known.len(), 1);
    }

    #[tokio::test]
    async fn a_cancel_wakes_the_waiting_task() {
        let cancels = Arc::new(Cancels::default());
        let session = cancels.register();
        let (process, secret) = (session.process, session.secret);
        session.begin();
        let waiting = tokio::spawn(async move { session.asked().await });
        tokio::task::yield_now().await;
        cancels.ask(process, secret);
        waiting.await.unwrap();
    }
}
