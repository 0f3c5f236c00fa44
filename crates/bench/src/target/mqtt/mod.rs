//! Devices that publish telemetry over MQTT.
//!
//! `driver.rs` runs the scenarios, `devices.rs` has their keys, `protocol.rs` is the client, `acks.rs` knows which acks end a message,
//! and `template.rs` has the messages. `platform.rs` creates the devices over the HTTP interface of the server, and `verify.rs` reads the stored
//! points back.

mod acks;
mod devices;
mod driver;
mod platform;
mod protocol;
mod template;
mod verify;
mod version;

pub(crate) use acks::acknowledgement;
pub(crate) use driver::{KIND, PROCESS_NAMES};
pub(crate) use platform::{Fleet, Platform, TargetOptions, leftover_finding};
pub use protocol::{Config, Messages, Mqtt, Tally};
pub use template::TELEMETRY_TOPIC;
pub(crate) use template::{PublishPacket, PublishTemplate};
pub use version::Version;
