//! The connections of all threads. The main thread cuts those that wait beyond the drain time.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::driver::Breaker;

/// For each thread, whether it waits for an answer, and how to interrupt it.
#[derive(Debug)]
pub(super) struct Connections(Vec<(AtomicBool, Mutex<Option<Breaker>>)>);

impl Connections {
    pub(super) fn new(count: u32) -> Self {
        Self((0..count).map(|_| (AtomicBool::new(false), Mutex::new(None))).collect())
    }

    /// Cuts the connections that wait for an answer.
    pub(super) fn cut_busy(&self) {
        for (busy, breaker) in &self.0 {
            if busy.load(Ordering::Acquire)
                && let Some(breaker) = &*breaker.lock()
            {
                breaker.cut();
            }
        }
    }

    pub(super) fn set_breaker(&self, number: u32, breaker: Option<Breaker>) {
        *self.0[number as usize].1.lock() = breaker;
    }

    pub(super) fn set_busy(&self, number: u32, busy: bool) {
        self.0[number as usize].0.store(busy, Ordering::Release);
    }
}
