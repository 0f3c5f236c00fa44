//! The threads on which sensors have their turns.
//!
//! A turn cannot be interrupted, and one evaluation may take seconds. So sensors have two lanes: one turn of the light lane runs at a time,
//! and [`HEAVY_TURNS_AT_ONCE`] of the heavy lane. A turn of the light lane that takes too long keeps its thread, and the light lane continues on
//! another one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::PanicEndsProcess;
use parking_lot::{Condvar, Mutex};

use crate::limits::{HEAVY_TURNS_AT_ONCE, TURN_OVERDUE, TURN_THREADS_MAX};

/// The turns of sensors: what a turn does, and what comes back.
pub(super) struct Lanes<T, D> {
    queue: Arc<Queue<T, D>>,
    threads: Vec<JoinHandle<()>>,
    /// Turns that were pushed and not taken back.
    out: usize,
    perform: fn(T) -> D,
    /// Called on the thread of a turn after its end.
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// The lane of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Turns that are expected to be short.
    Light,
    /// Turns of sensors whose evaluations take long.
    Heavy,
}

impl Lane {
    /// Whether a turn of this lane may begin. While a change waits for all sensors, long ones may not.
    pub(super) fn may_begin(self, is_held: bool) -> bool {
        self == Self::Light || !is_held
    }
}

#[derive(Debug)]
struct Queue<T, D> {
    state: Mutex<State<T, D>>,
    /// There is a turn for a thread, or the end.
    work: Condvar,
    /// A turn has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct State<T, D> {
    light: VecDeque<T>,
    heavy: VecDeque<T>,
    /// The turn that the light lane has now: its number, and when it began.
    light_now: Option<(u64, Instant)>,
    turns: u64,
    /// Turns that run and are not in `light_now`.
    heavy_now: usize,
    done: Vec<D>,
    is_over: bool,
}

impl<T: Send + 'static, D: Send + 'static> Lanes<T, D> {
    /// Lanes without threads; turns start them.
    pub(super) fn new(perform: fn(T) -> D, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let state = State {
            light: VecDeque::new(),
            heavy: VecDeque::new(),
            light_now: None,
            turns: 0,
            heavy_now: 0,
            done: Vec::new(),
            is_over: false,
        };
        let queue = Queue { state: Mutex::new(state), work: Condvar::new(), ended: Condvar::new() };
        Self { queue: Arc::new(queue), threads: Vec::new(), out: 0, perform, wake: Arc::new(wake) }
    }

    /// Lets a sensor have its turn after those that wait in the lane.
    pub(super) fn push(&mut self, lane: Lane, turn: T) {
        self.out += 1;
        let mut state = self.queue.state.lock();
        match lane {
            Lane::Light => state.light.push_back(turn),
            Lane::Heavy => state.heavy.push_back(turn),
        }
        let missing = state.runnable() > self.threads.len().saturating_sub(state.busy());
        drop(state);
        self.queue.work.notify_one();
        if missing {
            self.add_thread();
        }
    }

    /// Waits until the light lane has nothing more to do, but for turns that take too long.
    pub(super) fn wait_for_light(&mut self) {
        loop {
            let mut state = self.queue.state.lock();
            let Some((_, began)) = state.light_now else {
                if state.light.is_empty() {
                    return;
                }
                // A thread is about to take the next turn, or all of them have turns that take too long.
                self.queue.ended.wait_for(&mut state, TURN_OVERDUE);
                let missing = state.light_now.is_none() && state.busy() >= self.threads.len();
                drop(state);
                if missing {
                    self.add_thread();
                }
                continue;
            };
            let left = TURN_OVERDUE.saturating_sub(began.elapsed());
            if !left.is_zero() {
                self.queue.ended.wait_for(&mut state, left);
                continue;
            }
            // Its thread continues; another one takes the next turn.
            state.light_now = None;
            state.heavy_now += 1;
            let missing = !state.light.is_empty() && state.busy() >= self.threads.len();
            drop(state);
            self.queue.work.notify_one();
            if missing {
                self.add_thread();
            }
        }
    }

    /// The turns that have ended.
    pub(super) fn take_done(&mut self) -> Vec<D> {
        let done = std::mem::take(&mut self.queue.state.lock().done);
        self.out -= done.len();
        done
    }

    /// Takes back the turns of the heavy lane that have not begun.
    pub(super) fn recall(&mut self) -> Vec<T> {
        let waiting = Vec::from(std::mem::take(&mut self.queue.state.lock().heavy));
        self.out -= waiting.len();
        waiting
    }

    /// Whether all turns were taken back.
    pub(super) fn is_idle(&self) -> bool {
        self.out == 0
    }

    /// Waits until a turn has ended, at most for a time.
    pub(super) fn wait_for_one(&self, timeout: Duration) {
        let mut state = self.queue.state.lock();
        if state.done.is_empty() {
            self.queue.ended.wait_for(&mut state, timeout);
        }
    }

    fn add_thread(&mut self) {
        if self.threads.len() >= TURN_THREADS_MAX {
            return;
        }
        let (queue, perform, wake) = (Arc::clone(&self.queue), self.perform, Arc::clone(&self.wake));
        let run = move || {
            let _guard = PanicEndsProcess::begin();
            queue.run(perform, &*wake);
        };
        let name = format!("sensors-{}", self.threads.len());
        match std::thread::Builder::new().name(name).spawn(run) {
            Ok(thread) => self.threads.push(thread),
            // The turns wait for the threads that there are; the next turn tries again.
            Err(error) => tracing::warn!(%error, "the machine has no further thread for virtual sensors"),
        }
    }
}

impl<T, D> Drop for Lanes<T, D> {
    fn drop(&mut self) {
        self.queue.state.lock().is_over = true;
        self.queue.work.notify_all();
        // A thread cannot have panicked: a panic ends the process.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl<T, D> Queue<T, D> {
    fn run(&self, perform: fn(T) -> D, wake: &dyn Fn()) {
        let mut state = self.state.lock();
        while !state.is_over {
            let Some((number, turn)) = state.next() else {
                self.work.wait(&mut state);
                continue;
            };
            drop(state);
            let done = perform(turn);
            state = self.state.lock();
            state.done.push(done);
            match (number, state.light_now) {
                (Some(number), Some((now, _))) if number == now => state.light_now = None,
                _ => state.heavy_now -= 1,
            }
            self.ended.notify_all();
            wake();
        }
    }
}

impl<T, D> State<T, D> {
    /// The next turn, with its number if it is one of the light lane.
    fn next(&mut self) -> Option<(Option<u64>, T)> {
        if self.light_now.is_none()
            && let Some(turn) = self.light.pop_front()
        {
            self.turns += 1;
            self.light_now = Some((self.turns, Instant::now()));
            return Some((Some(self.turns), turn));
        }
        if self.heavy_now >= HEAVY_TURNS_AT_ONCE {
            return None;
        }
        let turn = self.heavy.pop_front()?;
        self.heavy_now += 1;
        Some((None, turn))
    }

    /// Threads with a turn.
    fn busy(&self) -> usize {
        self.heavy_now + usize::from(self.light_now.is_some())
    }

    /// Turns that could begin now.
    fn runnable(&self) -> usize {
        let light = usize::from(self.light_now.is_none() && !self.light.is_empty());
        light + self.heavy.len().min(HEAVY_TURNS_AT_ONCE.saturating_sub(self.heavy_now))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A turn that ends when it is told to, or at once.
    type Turn = (u32, Option<mpsc::Receiver<()>>);

    fn perform((number, until): Turn) -> u32 {
        if let Some(until) = until {
            until.recv().unwrap();
        }
        number
    }

    #[test]
    fn a_turn_without_an_end_holds_no_other_one() {
        let mut lanes = Lanes::new(perform, || {});
        let ends: Vec<_> = (0..2)
            .map(|number| {
                let (end, until) = mpsc::channel();
                lanes.push(Lane::Light, (number, Some(until)));
                end
            })
            .collect();
        for number in 10..20 {
            lanes.push(Lane::Light, (number, None));
        }
        lanes.wait_for_light();
        let mut done = lanes.take_done();
        done.sort_unstable();
        assert_eq!(done, (10..20).collect::<Vec<_>>());
        // The heavy lane waits for its turns, and the light one does not.
        lanes.push(Lane::Heavy, (20, None));
        assert_eq!(lanes.recall().len(), 1);
        lanes.push(Lane::Heavy, (30, None));
        lanes.push(Lane::Light, (40, None));
        lanes.wait_for_light();
        assert_eq!(lanes.take_done(), [40]);
        for end in ends {
            end.send(()).unwrap();
        }
        done.clear();
        while done.len() < 3 {
            lanes.wait_for_one(TURN_OVERDUE);
            done.extend(lanes.take_done());
        }
        done.sort_unstable();
        assert_eq!((done, lanes.is_idle()), (vec![0, 1, 30], true));
    }
}
