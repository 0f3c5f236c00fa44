//! Brings the store's progress to tasks that wait for durability, and durable values to live subscribers.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use store::{Progress, ProgressWatcher, Store};
use tokio::sync::watch;

use crate::live::Live;

/// Forwards progress of the store to waiting tasks and to live subscribers.
#[derive(Debug)]
pub(crate) struct FanOut {
    pub(crate) progress: watch::Sender<Progress>,
    live: Arc<Live>,
    wake: Mutex<Wake>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Wake {
    pending: bool,
    stop: bool,
}

impl FanOut {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self {
            progress: watch::Sender::new(Progress::default()),
            live,
            wake: Mutex::default(),
            woken: Condvar::new(),
        }
    }

    /// Delivers to live subscribers until [`stop`](Self::stop). It runs on its own thread, so subscribers cost the
    /// committer no time.
    pub(crate) fn run(&self, store: &dyn Store) {
        loop {
            {
                let mut wake = self.wake.lock();
                self.woken.wait_while(&mut wake, |wake| !wake.pending && !wake.stop);
                if wake.stop {
                    return;
                }
                wake.pending = false;
            }
            self.live.deliver(store.progress(), &|ticket| store.late_failure(ticket).is_some());
        }
    }

    pub(crate) fn stop(&self) {
        self.wake.lock().stop = true;
        self.woken.notify_all();
    }

    pub(crate) fn wake_up(&self) {
        self.wake.lock().pending = true;
        self.woken.notify_one();
    }
}

impl ProgressWatcher for FanOut {
    fn progress(&self, progress: Progress) {
        if self.progress.receiver_count() > 0 {
            self.progress.send_replace(progress);
        }
        if self.live.has_pending() {
            self.wake_up();
        }
    }
}
