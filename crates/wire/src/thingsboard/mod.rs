//! Topics and payloads of ThingsBoard's device API, beside telemetry.

pub mod attributes;
pub mod rpc;
