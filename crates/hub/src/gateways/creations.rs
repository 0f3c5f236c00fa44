//! Adds devices behind gateways to the registry, on a thread that may wait for the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use model::PanicEndsProcess;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::limits::{
    GATEWAY_CREATED_AT_ONCE_MAX, GATEWAY_RECORDS_MAX, GATEWAY_REQUESTS_MAX, GATEWAY_TENANT_DEVICES_MAX,
};
use crate::metrics::Metrics;
use crate::registry::{Device, Registry, RegistryError};
use crate::wake::Wake;

/// The thread that adds devices, and what waits for it. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Creations {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// The new gateways of devices.
    gateways: HashMap<Uuid, Uuid>,
    stopping: bool,
}

/// Devices to add for a gateway.
#[derive(Debug)]
pub(crate) struct NewBehind {
    pub(crate) gateway: Arc<Device>,
    pub(crate) names: Vec<String>,
    /// Their profile; the default one if it is `None` or does not exist.
    pub(crate) profile: Option<String>,
}

struct Request {
    new: NewBehind,
    outcome: Arc<OnceLock<Result<(), RegistryError>>>,
    wake: Arc<dyn Wake>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("new", &self.new).finish_non_exhaustive()
    }
}

/// A request for new devices.
#[derive(Debug)]
pub struct Creation(Arc<OnceLock<Result<(), RegistryError>>>);

/// Why a request for new devices is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreationRefused {
    /// The device is not a gateway.
    #[error(
        "the device {device:?} is not a gateway; set additionalInfo.gateway of the device, or add it with tacho device add --gateway"
    )]
    NotAGateway { device: String },
    /// Too many requests wait. Try again later.
    #[error("{limit} requests of gateways for new devices wait, which is the limit (GATEWAY_REQUESTS_MAX)")]
    Busy { limit: usize },
}

impl Creation {
    /// The result; `None` while the request waits. The devices are in the registry, and on the disk, when it is `Ok`.
    pub fn result(&self) -> Option<Result<(), &RegistryError>> {
        self.0.get().map(|result| result.as_ref().copied())
    }
}

impl Creations {
    /// Starts the thread.
    pub(crate) fn start(registry: Arc<Registry>, metrics: Arc<Metrics>) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("gateways".into()).spawn(move || {
                let _guard = PanicEndsProcess::begin();
                while let Some(work) = shared.next() {
                    work.run(&registry, &metrics);
                }
            })
        };
        let thread = thread.expect("BUG: a thread name without zero bytes and enough memory at start-up");
        Self { shared, thread: Some(thread) }
    }

    /// Requests devices. `wake` is called when the result is there.
    pub(crate) fn request(&self, new: NewBehind, wake: Arc<dyn Wake>) -> Result<Creation, CreationRefused> {
        if !new.gateway.gateway {
            return Err(CreationRefused::NotAGateway { device: new.gateway.name.clone() });
        }
        let mut waiting = self.shared.waiting.lock();
        if waiting.requests.len() >= GATEWAY_REQUESTS_MAX {
            return Err(CreationRefused::Busy { limit: GATEWAY_REQUESTS_MAX });
        }
        let outcome = Arc::new(OnceLock::new());
        waiting.requests.push_back(Request { new, outcome: Arc::clone(&outcome), wake });
        self.shared.changed.notify_one();
        Ok(Creation(outcome))
    }

    /// Records that a gateway has connected a device. Nobody waits for it.
    pub(crate) fn record(&self, device: Uuid, gateway: Uuid) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.gateways.len() < GATEWAY_RECORDS_MAX || waiting.gateways.contains_key(&device) {
            waiting.gateways.insert(device, gateway);
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Creations {
    fn drop(&mut self) {
        self.shared.waiting.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread cannot have panicked: a panic ends the process.
            drop(thread.join());
        }
    }
}

/// What the thread does next.
enum Work {
    Add(Request),
    Record(Vec<(Uuid, Uuid)>),
}

impl Shared {
    /// Waits for work; `None` when the thread ends.
    fn next(&self) -> Option<Work> {
        let mut waiting = self.waiting.lock();
        loop {
            // Connections wait for requests; nobody waits for records.
            if let Some(request) = waiting.requests.pop_front() {
                return Some(Work::Add(request));
            }
            if !waiting.gateways.is_empty() {
                let devices: Vec<Uuid> =
                    waiting.gateways.keys().take(GATEWAY_CREATED_AT_ONCE_MAX).copied().collect();
                let pairs = devices.into_iter().filter_map(|device| waiting.gateways.remove_entry(&device));
                return Some(Work::Record(pairs.collect()));
            }
            if waiting.stopping {
                return None;
            }
            self.changed.wait(&mut waiting);
        }
    }
}

impl Work {
    fn run(self, registry: &Registry, metrics: &Metrics) {
        match self {
            Self::Add(Request { new, outcome, wake }) => {
                let NewBehind { gateway, names, profile } = new;
                let most = GATEWAY_TENANT_DEVICES_MAX;
                let added = registry.add_behind_gateway(&gateway, &names, profile.as_deref(), most);
                match &added {
                    Ok(devices) => {
                        let count = devices.iter().filter(|device| device.created).count();
                        metrics.gateway_devices_added.inc_by(count as u64);
                        tracing::info!(gateway = gateway.name, count, "a gateway added devices");
                    }
                    Err(error) => {
                        tracing::warn!(gateway = gateway.name, %error, "devices of a gateway were not added");
                    }
                }
                // Nobody else sets it.
                drop(outcome.set(added.map(drop)));
                wake.wake();
            }
            Self::Record(pairs) => {
                if let Err(error) = registry.set_last_gateways(&pairs) {
                    tracing::warn!(%error, devices = pairs.len(), "the gateways of devices are not recorded");
                }
            }
        }
    }
}
