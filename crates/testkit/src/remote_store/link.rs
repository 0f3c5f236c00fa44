//! The link: a thread that answers writes late and out of order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::{Progress, ProgressWatcher, Sequence, StoreError};

/// One write in this many is refused as busy.
const BUSY_EVERY: u64 = 8;
/// The longest time until an answer.
const LATENCY_US_MAX: u64 = 2_000;

/// The link to the store.
pub(super) struct Link {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
    watchers: Mutex<Vec<Arc<dyn ProgressWatcher>>>,
}

#[derive(Default)]
struct State {
    seed: u64,
    writes: u64,
    /// One taken write in this many is lost; none if 0.
    lose_one_in: u64,
    taken: u64,
    /// Writes without an answer, with the time of the answer.
    open: BTreeMap<Sequence, Instant>,
    /// All writes up to this one have their answers.
    answered: Sequence,
    /// The last write.
    sent: Sequence,
    /// Callers that were refused expect a call of their watchers.
    room: bool,
    ended: bool,
}

impl Link {
    pub(super) fn new(seed: u64) -> Self {
        let state = State { seed, ..State::default() };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), woken: Condvar::new(), watchers: Mutex::default() });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.answer()
        });
        Self { shared, thread: Mutex::new(Some(thread)) }
    }

    /// Refuses some writes.
    pub(super) fn admit(&self) -> Result<(), StoreError> {
        let mut state = self.shared.state.lock();
        state.writes += 1;
        if !state.writes.is_multiple_of(BUSY_EVERY) || state.ended {
            return Ok(());
        }
        state.room = true;
        self.shared.woken.notify_all();
        Err(StoreError::Busy { reason: format!("one write in {BUSY_EVERY} is refused") })
    }

    /// Sets how many of the writes are lost.
    pub(super) fn lose_one_in(&self, every: u64) {
        self.shared.state.lock().lose_one_in = every;
    }

    /// Whether the write that was just taken is lost.
    pub(super) fn loses(&self) -> bool {
        let mut state = self.shared.state.lock();
        state.taken += 1;
        state.lose_one_in > 0 && state.taken.is_multiple_of(state.lose_one_in)
    }

    /// Calls the watchers.
    pub(super) fn wake(&self) {
        self.shared.state.lock().room = true;
        self.shared.woken.notify_all();
    }

    /// Notes a write, whose answer will come.
    pub(super) fn sent(&self, sequence: Sequence) {
        let mut state = self.shared.state.lock();
        // SplitMix64: https://prng.di.unimi.it/splitmix64.c
        state.seed = state.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state.seed ^ (state.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let latency = Duration::from_micros((bits ^ (bits >> 31)) % LATENCY_US_MAX);
        state.sent = state.sent.max(sequence);
        if sequence > state.answered {
            state.open.insert(sequence, Instant::now() + latency);
        }
        self.shared.woken.notify_all();
    }

    /// What callers know of the progress of the store.
    pub(super) fn progress(&self, inner: Progress) -> Progress {
        let answered = self.shared.state.lock().answered.min(inner.durable);
        Progress { written: answered, durable: answered, ..inner }
    }

    pub(super) fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.shared.watchers.lock().push(watcher);
    }

    /// Waits for all answers, and ends the thread.
    pub(super) fn finish(&self) {
        self.shared.state.lock().ended = true;
        self.shared.woken.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            thread.join().expect("the thread of the link ends");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    /// Gives answers until the store is closed.
    fn answer(&self) {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            let before = state.answered;
            state.open.retain(|_, due| *due > now);
            // An answer counts when all earlier writes have theirs.
            state.answered = state.open.keys().next().map_or(state.sent, |first| first - 1).max(before);
            let room = std::mem::take(&mut state.room);
            if state.answered > before || room {
                let (appended, answered) = (state.sent, state.answered);
                parking_lot::MutexGuard::unlocked(&mut state, || self.notify(appended, answered));
                continue;
            }
            if state.ended && state.open.is_empty() {
                return;
            }
            match state.open.values().min().copied() {
                Some(due) => drop(self.woken.wait_until(&mut state, due)),
                None => self.woken.wait(&mut state),
            }
        }
    }

    fn notify(&self, appended: Sequence, answered: Sequence) {
        let progress = Progress { appended, written: answered, durable: answered, sealed: false };
        self.watchers.lock().iter().for_each(|watcher| watcher.progress(progress));
    }
}
