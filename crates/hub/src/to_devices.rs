//! Messages to devices: outboxes of their connections, and sending.

use std::sync::Arc;

use uuid::Uuid;

use crate::device_messages::{Delivered, DeviceMessage, DeviceOutbox, Interests, Wake};
use crate::hub::Hub;
use crate::registry::Device;

impl Hub {
    /// Opens the outbox of a connection that a device has authenticated. `wake` is called when messages wait.
    pub fn open_outbox(&self, device: &Device, interests: Interests, wake: Arc<dyn Wake>) -> DeviceOutbox {
        self.outboxes.open(device.id, interests, wake)
    }

    /// Sets what a connection has subscribed to.
    pub fn set_interests(&self, outbox: &DeviceOutbox, interests: Interests) {
        outbox.set_interests(interests);
    }

    /// Sends a message to the connections of a device. The hub calls it after it has checked the caller.
    pub fn send_to_device(&self, device: Uuid, message: &Arc<DeviceMessage>) -> Delivered {
        self.outboxes.send(device, message)
    }
}
