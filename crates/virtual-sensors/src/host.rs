//! The state that the engine and the operations work with: the hub, the stores below it, and what the thread shares with callers.

use std::sync::Arc;

use hub::Hub;
use hub::registry::Registry;
use kv::KeyValueStore;
use store::Store;

use crate::shared::Sensors;

/// What the engine and the operations work with.
pub(crate) struct Host {
    pub(crate) hub: Arc<Hub>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kv: Arc<dyn KeyValueStore>,
    pub(crate) sensors: Arc<Sensors>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// The registry of tenants, users and devices.
    pub(crate) fn registry(&self) -> &Registry {
        self.hub.registry()
    }
}
