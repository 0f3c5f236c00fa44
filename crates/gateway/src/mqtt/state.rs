//! The state that the threads of the MQTT door share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hub::Hub;

use super::clients::Clients;
use super::options::MqttOptions;
use super::worker_handle::WorkerHandle;

/// The state that all threads of the door share.
pub(super) struct MqttState {
    pub(super) hub: Arc<Hub>,
    pub(super) options: MqttOptions,
    pub(super) clients: Clients,
    pub(super) workers: Vec<Arc<WorkerHandle>>,
    /// Open connections.
    pub(super) connections: AtomicUsize,
    pub(super) stopping: AtomicBool,
    pub(super) opened: Instant,
}

impl MqttState {
    /// Seconds since the door was opened.
    pub(super) fn now_s(&self) -> u32 {
        u32::try_from(self.opened.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
