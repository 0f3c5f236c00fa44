//! Topics and payloads of ThingsBoard's device API, besides telemetry of a single device.

pub mod attributes;
pub mod claim;
pub mod gateway;
mod names;
mod object;
pub mod packages;
pub mod protobuf;
pub mod provision;
pub mod rpc;

pub use names::Names;
