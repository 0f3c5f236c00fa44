//! The thread that writes the states of devices.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use kv::{Direction, KeyRange, KeyValueStore, KvError};
use model::{PanicEndsProcess, Timestamp};

use super::decide::DeviceFacts;
use super::entry::Entry;
use super::limits::{REPORTS_PER_SWEEP_MAX, SWEEP_INTERVAL};
use super::map::DeviceStates;
use super::stored::{ACTIVE_DEVICES, DeviceState, active_key, device_in};
use crate::attributes::{AttributeError, AttributeScope, Owner, Scope, Writer, update_by_server};
use crate::registry::Registry;

/// The thread. [`stop`](Self::stop) ends it.
#[derive(Debug)]
pub(crate) struct StateThread {
    states: Arc<DeviceStates>,
    thread: JoinHandle<()>,
}

/// What the thread works with.
struct Work {
    states: Arc<DeviceStates>,
    registry: Arc<Registry>,
    kv: Arc<dyn KeyValueStore>,
    writer: Arc<Writer>,
    /// Whether the last write failed, so that the log says it once.
    is_failing: bool,
}

impl StateThread {
    pub(crate) fn start(
        states: Arc<DeviceStates>,
        registry: Arc<Registry>,
        kv: Arc<dyn KeyValueStore>,
        writer: Arc<Writer>,
    ) -> Self {
        let mut work = Work { states: Arc::clone(&states), registry, kv, writer, is_failing: false };
        let thread = std::thread::Builder::new().name("device-state".into()).spawn(move || {
            let _guard = PanicEndsProcess::begin();
            work.run();
        });
        let thread = thread.expect("BUG: a thread name without zero bytes and enough memory at start-up");
        Self { states, thread }
    }

    /// Writes what is not stored yet, and ends the thread.
    pub(crate) fn stop(self) {
        self.states.stop();
        // The thread cannot have panicked: a panic ends the process.
        drop(self.thread.join());
    }
}

impl Work {
    fn run(&mut self) {
        if let Err(error) = self.load() {
            tracing::error!(%error, "the active devices cannot be read; those that stay silent keep their stored state");
        }
        let mut swept = Instant::now();
        let mut again = Vec::new();
        loop {
            let rest = SWEEP_INTERVAL.saturating_sub(swept.elapsed());
            let (queued, is_stopping) = self.states.next(rest);
            queued.iter().for_each(|entry| entry.dequeue());
            again.extend(self.store(queued, false));
            if swept.elapsed() >= SWEEP_INTERVAL || is_stopping {
                swept = Instant::now();
                let mut due = self.states.sweep(REPORTS_PER_SWEEP_MAX, is_stopping);
                due.append(&mut again);
                again = self.store(due, is_stopping);
            }
            if is_stopping {
                return;
            }
        }
    }

    /// Queues the devices that were active when the server stopped.
    fn load(&self) -> Result<(), KvError> {
        for record in self.kv.scan(ACTIVE_DEVICES, &KeyRange::all(), Direction::Ascending)? {
            if let Some((_, device)) = device_in(&record?.0) {
                let entry = self.states.entry(device);
                if !entry.is_loaded() {
                    self.states.enqueue(&entry);
                }
            }
        }
        self.states.complete();
        Ok(())
    }

    /// Stores the states of these devices. Returns those that the key-value store did not take.
    fn store(&mut self, entries: Vec<Arc<Entry>>, is_last: bool) -> Vec<Arc<Entry>> {
        let mut failed = Vec::new();
        for entry in entries {
            match self.store_one(&entry, is_last) {
                Ok(true) => self.states.enqueue(&entry),
                Ok(false) => self.is_failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::warn!(%error, "the state of a device is not stored; it is tried again");
                    }
                    failed.push(entry);
                }
            }
        }
        failed
    }

    /// Stores the state of a device. Returns whether something new came meanwhile.
    fn store_one(&self, entry: &Entry, is_last: bool) -> Result<bool, AttributeError> {
        let Some(device) = self.registry.device_by_id(entry.device) else {
            entry.clear();
            return Ok(false);
        };
        let owner = Owner::from(&device);
        if !entry.is_loaded() {
            entry.load(&DeviceState::read(&*self.kv, owner)?);
        }
        let seen = DeviceFacts { is_last, ..self.states.seen(entry) };
        let decision = seen.decide();
        if !decision.writes.is_empty() {
            let place = AttributeScope { owner, scope: Scope::Server };
            let now = Timestamp::from_millis(seen.now_ms).unwrap_or(Timestamp::MAX);
            let exists = || self.registry.device_by_id(device.id).is_some();
            let written = self.writer.change(place, exists, |kv| {
                let mut change = update_by_server(kv, place, &decision.writes, now)?;
                let key = active_key(device.tenant, device.id);
                match (seen.active, decision.active) {
                    (false, true) => drop(change.batch.put(ACTIVE_DEVICES, key, Vec::new())),
                    (true, false) => drop(change.batch.delete(ACTIVE_DEVICES, key)),
                    _ => {}
                }
                Ok(change)
            });
            match written {
                // It was deleted at this moment.
                Err(AttributeError::Registry(_)) => {
                    entry.clear();
                    return Ok(false);
                }
                written => written?,
            };
        }
        Ok(entry.apply(&seen, &decision))
    }
}
