//! The real binary as its users meet it: configuration, start and end, devices, import, options. What real MQTT and HTTP clients
//! see is tested in `tests/e2e`.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod configuration;
mod devices;
mod import;
mod lifecycle;
mod options;
mod tacho;
