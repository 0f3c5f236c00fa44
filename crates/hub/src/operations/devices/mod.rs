//! Devices: their activity, attributes, messages, calls, claims and refusals.

mod behind_gateways;
mod calls;
mod claims;
mod device_activity;
mod device_attributes;
pub mod provisioning;
mod refusals;
pub mod stored_calls;
mod to_devices;

pub use device_attributes::OwnAttributes;
