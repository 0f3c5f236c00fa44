//! Devices that publish telemetry over MQTT.
//!
//! `driver.rs` runs the scenarios, `devices.rs` has their keys, `protocol.rs` is the client, `codec.rs` encodes its
//! packets. `platform.rs` creates the devices over the HTTP interface of the server, and `verify.rs` reads the stored
//! points back.

pub(crate) mod codec;
mod devices;
mod driver;
mod platform;
mod protocol;
mod verify;

pub use codec::{Protocol as Version, TELEMETRY_TOPIC};
pub(crate) use driver::KIND;
pub use protocol::{Config, Messages, Mqtt, Tally};
