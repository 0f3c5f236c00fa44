//! Devices behind gateways: operations of the gateways.

use std::sync::Arc;

use crate::device_messages::{DeviceOutbox, Interests};
use crate::gateways::{Creation, CreationRefused, NewBehind};
use crate::hub::Hub;
use crate::registry::Device;
use crate::wake::Wake;

impl Hub {
    /// The device of this name that a gateway may speak for: one of its own tenant.
    pub fn device_behind(&self, gateway: &Device, name: &str) -> Option<Arc<Device>> {
        self.registry.device_by_name(gateway.tenant, name).filter(|_| gateway.gateway)
    }

    /// Adds devices behind a gateway on another thread, which calls `wake` when it has the result. Devices that are there stay as
    /// they are. A profile that does not exist counts as the default one.
    ///
    /// # Errors
    /// The device is not a gateway, or too many requests wait.
    pub fn add_devices_behind(
        &self,
        gateway: &Arc<Device>,
        names: Vec<String>,
        profile: Option<String>,
        wake: Arc<dyn Wake>,
    ) -> Result<Creation, CreationRefused> {
        let gateway = Arc::clone(gateway);
        self.creations.request(NewBehind { gateway, names, profile }, wake)
    }

    /// Opens the outbox of a device behind a connection of a gateway, like [`open_outbox`](Self::open_outbox). Another connection of
    /// a gateway that has the outbox loses it if `takes_over` is set; otherwise this returns `None`.
    pub fn open_outbox_behind(
        &self,
        gateway: &Device,
        device: &Device,
        interests: Interests,
        wake: Arc<dyn Wake>,
        takes_over: bool,
    ) -> Option<DeviceOutbox> {
        let outbox = self.outboxes.open_behind(device.id, wake, takes_over)?;
        self.calls.subscribe(&outbox, interests, false);
        if device.last_gateway != Some(gateway.id) {
            self.creations.record(device.id, gateway.id);
        }
        Some(outbox)
    }
}
