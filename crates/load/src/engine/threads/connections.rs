//! The connections of all threads. The main thread cancels those that wait beyond the drain time.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use clients::CancelHandle;

/// For each thread, whether it waits for an answer, and how to interrupt it.
#[derive(Debug)]
pub(super) struct Connections(Vec<(AtomicBool, Mutex<Option<CancelHandle>>)>);

impl Connections {
    pub(super) fn new(count: u32) -> Self {
        Self((0..count).map(|_| (AtomicBool::new(false), Mutex::new(None))).collect())
    }

    /// Cancels the connections that wait for an answer.
    pub(super) fn cancel_busy(&self) {
        for (busy, cancel_handle) in &self.0 {
            if busy.load(Ordering::Acquire)
                && let Some(cancel_handle) = &*cancel_handle.lock()
            {
                cancel_handle.cancel();
            }
        }
    }

    pub(super) fn set_cancel_handle(&self, number: u32, cancel_handle: Option<CancelHandle>) {
        *self.0[number as usize].1.lock() = cancel_handle;
    }

    pub(super) fn set_busy(&self, number: u32, busy: bool) {
        self.0[number as usize].0.store(busy, Ordering::Release);
    }
}
