//! The state of devices: whether they are active, and when they were last heard, connected and disconnected.
//!
//! The state is in server attributes of the device, under ThingsBoard's names (`DefaultDeviceStateService`); `docs/protocol/device-state.md`
//! describes it. A device is active from its first packet or request until it is silent for the inactivity timeout.
//!
//! A door holds a [`DevicePresence`] for each connection and touches it for each packet, which costs two atomic loads, and one
//! atomic store when the millisecond has changed. What else there is to do waits in a queue for the thread `device-state`: it
//! writes the attributes, and once a second it looks for devices that are silent for too long. The map has the devices that are
//! active or connected; nothing is kept for a device that never connects.

mod clock;
mod decide;
mod entry;
mod keys;
pub mod limits;
mod map;
mod stored;
mod thread;

pub(crate) use keys::{INACTIVITY_TIMEOUT, LAST_ACTIVITY_TIME, is_kept};
pub use map::DevicePresence;
pub(crate) use map::DeviceStates;
pub use stored::DeviceState;
pub(crate) use stored::{ACTIVE_DEVICES, active_key};
pub(crate) use thread::StateThread;
