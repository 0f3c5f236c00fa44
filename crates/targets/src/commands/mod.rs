//! Users command devices over REST while the devices report telemetry over MQTT: calls (RPC) and shared attributes of a
//! server with ThingsBoard's interface.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys, `protocol.rs` is both kinds of clients: `device.rs` speaks
//! MQTT, `user.rs` speaks HTTP. `command.rs` has the commands.

mod command;
mod device;
mod driver;
mod options;
mod protocol;
mod user;

pub(crate) use driver::KIND;
