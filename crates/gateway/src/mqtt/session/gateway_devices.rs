//! The devices behind a connection of a gateway.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use hub::device_messages::{DeviceOutbox, Interests};
use hub::gateways::Creation;
use hub::gateways::limits::GATEWAY_DEVICES_MAX;
use hub::registry::{Device, Registry};
use hub::wake::Wake;
use hub::{DevicePresence, Hub};
use model::SeriesId;
use model::name::check_tag_value;
use parking_lot::Mutex;
use slab::Slab;

/// The devices for which a connection of a gateway speaks.
#[derive(Debug)]
pub(super) struct GatewayDevices {
    devices: Slab<GatewayDevice>,
    by_name: HashMap<Box<str>, usize>,
    /// What the gateway has subscribed to for all of them.
    interests: Interests,
    waiting: Arc<Waiting>,
    /// Devices that the registry adds now. The message that names them waits.
    pub(super) creation: Option<Creation>,
}

/// A device behind a gateway.
#[derive(Debug)]
pub(super) struct GatewayDevice {
    pub(super) device: Arc<Device>,
    /// Reports that the device is connected and heard.
    pub(super) presence: DevicePresence,
    /// The series of the device; known after the first telemetry.
    pub(super) series: Option<SeriesId>,
    /// Messages of the server for the device; `None` while another connection of a gateway has them.
    pub(super) outbox: Option<DeviceOutbox>,
}

/// The devices for which messages wait. An outbox adds its device once, until it has been emptied.
struct Waiting {
    slots: Mutex<VecDeque<usize>>,
    wake: Arc<dyn Wake>,
}

/// Wakes the connection of a gateway for one of its devices.
struct WakeOf {
    slot: usize,
    waiting: Arc<Waiting>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Wake for WakeOf {
    fn wake(&self) {
        self.waiting.slots.lock().push_back(self.slot);
        self.waiting.wake.wake();
    }
}

impl GatewayDevices {
    /// No devices; `wake` wakes the connection of the gateway.
    pub(super) fn new(wake: Arc<dyn Wake>) -> Self {
        Self {
            devices: Slab::new(),
            by_name: HashMap::new(),
            interests: Interests::default(),
            waiting: Arc::new(Waiting { slots: Mutex::default(), wake }),
            creation: None,
        }
    }

    /// What wakes the connection of the gateway.
    pub(super) fn wake(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.waiting.wake)
    }

    /// The device of this name, if the connection speaks for it.
    pub(super) fn find(&mut self, name: &str) -> Option<&mut GatewayDevice> {
        let slot = self.by_name.get(name)?;
        self.devices.get_mut(*slot)
    }

    /// How many further devices the connection may have.
    pub(super) fn room(&self) -> usize {
        GATEWAY_DEVICES_MAX - self.devices.len()
    }

    /// Why the connection cannot speak for a device of this name; `None` if it can.
    pub(super) fn fault_of(&self, name: &str) -> Option<String> {
        if let Err(error) = check_tag_value(name) {
            return Some(error.to_string());
        }
        let is_full = self.room() == 0 && !self.by_name.contains_key(name);
        is_full.then(|| {
            format!(
                "{GATEWAY_DEVICES_MAX} devices are behind this connection, which is the limit (GATEWAY_DEVICES_MAX); \
                 disconnect some, or divide them between connections"
            )
        })
    }

    /// Speaks for a device of the gateway from now on. If another connection of a gateway does, that one continues, unless
    /// `takes_over` is set.
    pub(super) fn attach(&mut self, gateway: &Device, device: Arc<Device>, takes_over: bool, hub: &Hub) {
        let slot = match self.by_name.get(device.name.as_str()) {
            Some(slot) => *slot,
            None => {
                let name = device.name.as_str().into();
                let presence = hub.device_connected(&device);
                let slot =
                    self.devices.insert(GatewayDevice { device, presence, series: None, outbox: None });
                self.by_name.insert(name, slot);
                slot
            }
        };
        let behind = &mut self.devices[slot];
        if behind.outbox.as_ref().is_some_and(|outbox| !outbox.is_moved()) {
            return;
        }
        let wake = Arc::new(WakeOf { slot, waiting: Arc::clone(&self.waiting) });
        let (device, interests) = (&behind.device, self.interests);
        behind.outbox = hub.open_outbox_behind(gateway, device, interests, wake, takes_over);
    }

    /// Speaks for a device no longer.
    pub(super) fn detach(&mut self, name: &str) {
        if let Some(slot) = self.by_name.remove(name) {
            self.devices.remove(slot);
        }
    }

    /// Speaks for no device any more.
    pub(super) fn detach_all(&mut self) {
        self.by_name = HashMap::new();
        self.devices = Slab::new();
    }

    /// Sets what the gateway has subscribed to.
    pub(super) fn set_interests(&mut self, interests: Interests, hub: &Hub) {
        if self.interests == interests {
            return;
        }
        self.interests = interests;
        for outbox in self.devices.iter().filter_map(|(_, behind)| behind.outbox.as_ref()) {
            hub.set_interests(outbox, interests);
        }
    }

    /// Applies changes of the registry: forgets devices that were deleted or renamed.
    pub(super) fn follow(&mut self, registry: &Registry) {
        let devices = &mut self.devices;
        self.by_name.retain(|name, slot| {
            let known = devices.get_mut(*slot);
            let found = known.as_ref().and_then(|behind| registry.device_by_id(behind.device.id));
            match (known, found.filter(|device| *device.name == **name)) {
                (Some(behind), Some(device)) => {
                    // A caller can have deleted the series.
                    behind.series = None;
                    behind.device = device;
                    true
                }
                _ => {
                    devices.try_remove(*slot);
                    false
                }
            }
        });
    }

    /// Takes a device for which messages wait.
    pub(super) fn next_waiting(&self) -> Option<(usize, &GatewayDevice)> {
        loop {
            let slot = self.waiting.slots.lock().pop_front()?;
            // The device of the slot may be gone, or be another one now, which costs an empty look.
            if let Some(behind) = self.devices.get(slot) {
                return Some((slot, behind));
            }
        }
    }

    /// Puts a device back for which further messages wait.
    pub(super) fn waits_again(&self, slot: usize) {
        self.waiting.slots.lock().push_back(slot);
    }

    /// Whether messages wait for a device.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.slots.lock().is_empty()
    }
}
