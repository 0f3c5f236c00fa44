//! The queue of single devices that wait to be created.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::entity::Provisioned;
use super::error::RegistryError;
use super::limits::DEVICES_PER_COMMIT_MAX;
use super::new_devices::{Kind, Wanted};

/// Devices that wait to be created. One of the threads that wait creates those of all of them.
#[derive(Debug, Default)]
pub(super) struct CreationQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Queued>,
    /// Whether a thread creates devices now.
    busy: bool,
}

/// A device in the queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) tenant: Uuid,
    pub(super) profile: Option<String>,
    pub(super) wanted: Wanted,
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
}

/// Where the result of a queued device comes.
pub(super) type Outcome = Arc<Mutex<Option<Result<Provisioned, RegistryError>>>>;

impl CreationQueue {
    /// Queues a device and waits for its result. While no other thread creates devices, this one does it with `create`.
    pub(super) fn run(
        &self,
        queued: Queued,
        create: impl Fn(Vec<Queued>),
    ) -> Result<Provisioned, RegistryError> {
        let outcome = Arc::clone(&queued.outcome);
        let mut state = self.state.lock();
        state.waiting.push(queued);
        loop {
            if let Some(result) = outcome.lock().take() {
                return result;
            }
            if state.busy {
                self.changed.wait(&mut state);
                continue;
            }
            state.busy = true;
            let count = state.waiting.len().min(DEVICES_PER_COMMIT_MAX);
            let batch = state.waiting.drain(..count).collect();
            drop(state);
            create(batch);
            state = self.state.lock();
            state.busy = false;
            self.changed.notify_all();
        }
    }
}
