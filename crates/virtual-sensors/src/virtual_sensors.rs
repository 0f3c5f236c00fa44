//! The virtual sensors of a server: the start and the end of their thread. The folder `operations` adds what callers do with them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use hub::Hub;
use hub::taps::limits::TAP_PENDING_BYTES_MAX;
use kv::KeyValueStore;
use model::limits::Portion;
use parking_lot::Mutex;
use store::Store;
use uuid::Uuid;

use crate::evaluation::Engine;
use crate::host::Host;
use crate::limits::INBOXES_BYTES_MAX;
use crate::shared::Sensors;

/// The virtual sensors of a server. They belong to the default tenant.
#[derive(Debug)]
pub struct VirtualSensors {
    pub(crate) host: Arc<Host>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl VirtualSensors {
    /// Virtual sensors over a hub and the stores that it has, with bounds that fit the memory of this machine. None runs before
    /// [`start`](Self::start). Make them before the doors open: doors look up a series once.
    pub fn new(
        memory: Portion,
        hub: Arc<Hub>,
        store: Arc<dyn Store>,
        kv: Arc<dyn KeyValueStore>,
    ) -> Arc<Self> {
        let (tap, inboxes) = (memory.of(TAP_PENDING_BYTES_MAX), memory.of(INBOXES_BYTES_MAX));
        let sensors = Arc::new(Sensors::new(tap, inboxes, hub.metrics()));
        hub.add_tap(&sensors.tap);
        hub.add_observer(Arc::clone(&sensors) as _);
        Arc::new(Self { host: Arc::new(Host { hub, store, kv, sensors }), thread: Mutex::default() })
    }

    /// The tenant of the sensors.
    pub fn tenant(&self) -> Uuid {
        self.host.registry().default_tenant()
    }

    /// Loads the sensors of a directory, and follows its changes. A directory that does not exist has no sensors until it does.
    pub fn start(&self, directory: PathBuf) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            self.host.sensors.end.store(false, Ordering::Relaxed);
            *thread = Some(Engine::start(&self.host, directory));
        }
    }

    /// Stores how far the sensors have evaluated, and ends their thread. Call it before [`Hub::close`].
    pub fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.host.sensors.end.store(true, Ordering::Relaxed);
        self.host.sensors.tap.stop();
        // The thread cannot have panicked: a panic ends the process.
        drop(thread.join());
    }
}

impl Drop for VirtualSensors {
    fn drop(&mut self) {
        // Turns that still run have the host, too.
        self.host.sensors.end.store(true, Ordering::Relaxed);
    }
}
