//! Devices that publish telemetry over MQTT.
//!
//! `driver.rs` runs the scenarios, `devices.rs` has their keys and `gateway_options.rs` those of gateways. `protocol.rs` is the client, `behind.rs` its part
//! that is a gateway, `tally.rs` its counts, `acks.rs` knows which acks end a message, `subscription.rs` subscribes, and `template.rs` has the messages.
//! `platform.rs` creates the devices over the HTTP interface of the server, `rest_platform.rs` is a server whose REST interface is part of the load,
//! `verify.rs` reads the stored points back, and `findings.rs` states what the result is.

mod acks;
pub(crate) mod defaults;
mod devices;
mod driver;
mod findings;
mod gateway;
mod gateway_options;
mod platform;
mod protocol;
mod rest_platform;
mod subscription;
mod tally;
mod template;
mod verify;
mod version;

pub(crate) use acks::{PacketIds, acknowledgement};
pub(crate) use driver::KIND;
pub use gateway::{Gateway, GatewaySends};
pub(crate) use platform::{Fleet, Platform, TargetOptions, leftover_finding, opened_broker};
pub use protocol::{Config, Messages, Mqtt};
pub(crate) use rest_platform::RestPlatform;
pub(crate) use subscription::subscribe;
pub use tally::Tally;
pub use template::TELEMETRY_TOPIC;
pub(crate) use template::{PublishPacket, PublishTemplate};
pub use version::Version;
