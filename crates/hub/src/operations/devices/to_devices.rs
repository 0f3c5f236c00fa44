//! Messages to devices: outboxes of their connections, and sending.

use std::sync::Arc;

use uuid::Uuid;

use crate::device_messages::{Delivered, DeviceMessage, DeviceOutbox, Interests, Wake};
use crate::hub::Hub;
use crate::registry::Device;

impl Hub {
    /// Opens the outbox of a connection that a device has authenticated. `wake` is called when messages wait. A connection that
    /// wants RPC requests gets the pending calls of the device.
    pub fn open_outbox(&self, device: &Device, interests: Interests, wake: Arc<dyn Wake>) -> DeviceOutbox {
        self.open_subscribed(device, interests, wake, false)
    }

    /// Opens the outbox of a device that polls for one RPC request. It gets only pending calls that no connection has taken:
    /// otherwise the next poll would get the same call again while the device works on it.
    pub fn open_poll(&self, device: &Device, wake: Arc<dyn Wake>) -> DeviceOutbox {
        let interests = Interests { rpc: true, shared_attributes: false };
        self.open_subscribed(device, interests, wake, true)
    }

    /// Sets what a connection has subscribed to. A connection that wants RPC requests now and did not before gets the pending
    /// calls of the device.
    pub fn set_interests(&self, outbox: &DeviceOutbox, interests: Interests) {
        self.calls.subscribe(outbox, interests, false);
    }

    fn open_subscribed(
        &self,
        device: &Device,
        interests: Interests,
        wake: Arc<dyn Wake>,
        only_new: bool,
    ) -> DeviceOutbox {
        let outbox = self.outboxes.open(device.id, Interests::default(), wake);
        self.calls.subscribe(&outbox, interests, only_new);
        outbox
    }

    /// Sends a message to the connections of a device. The hub calls it after it has checked the caller.
    pub fn send_to_device(&self, device: Uuid, message: &Arc<DeviceMessage>) -> Delivered {
        self.outboxes.send(device, message)
    }
}
