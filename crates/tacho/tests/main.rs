//! The real binary: configuration, start and end, devices, import, options, virtual
//! sensors. The behaviour that real MQTT and HTTP clients
//! see has its tests in `tests/e2e`.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod configuration;
mod devices;
mod import;
mod lifecycle;
mod old_directory;
mod options;
mod sensors;
mod tacho;
