//! Devices that publish telemetry over MQTT.
//!
//! `driver.rs` runs the scenarios, `devices.rs` has their keys, `protocol.rs` is the client, `template.rs` has its
//! messages. `platform.rs` creates the devices over the HTTP interface of the server, and `verify.rs` reads the stored
//! points back.

mod devices;
mod driver;
mod platform;
mod protocol;
mod template;
mod verify;
mod version;

pub(crate) use driver::KIND;
pub use protocol::{Config, Messages, Mqtt, Tally};
pub use template::TELEMETRY_TOPIC;
pub use version::Version;
