//! The state that the threads of the MQTT door share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hub::Hub;
use tokio::sync::Semaphore;

use super::clients::Clients;
use super::options::MqttOptions;
use super::provisioner::Provisioner;
use super::worker_handle::WorkerHandle;
use crate::acceptor::Gate;

/// The state that all threads of the door share.
pub(super) struct MqttState {
    pub(super) hub: Arc<Hub>,
    pub(super) options: MqttOptions,
    pub(super) provisioner: Arc<Provisioner>,
    pub(super) clients: Clients,
    pub(super) workers: Vec<Arc<WorkerHandle>>,
    /// Connections that were given to workers so far.
    pub(super) given: AtomicUsize,
    pub(super) gate: Arc<Gate>,
    /// Permits of connections above a limit that wait for their CONNECT, to be answered.
    pub(super) refusing: Arc<Semaphore>,
    pub(super) stopping: AtomicBool,
    pub(super) opened: Instant,
}

impl MqttState {
    /// Seconds since the door was opened.
    pub(super) fn now_s(&self) -> u32 {
        u32::try_from(self.opened.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    /// The worker of the next connection: all get the same number.
    pub(super) fn next_worker(&self) -> &WorkerHandle {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        &self.workers[given % self.workers.len()]
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
