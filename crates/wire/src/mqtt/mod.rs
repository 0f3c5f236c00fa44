//! MQTT 3.1.1 and MQTT 5.0: bytes to packets and back, for servers and clients.
//!
//! Sources: OASIS "MQTT Version 3.1.1 Plus Errata 01" and "MQTT Version 5.0"; clause tags such as `[MQTT-3.3.1-4]`
//! stand beside the lines that obey them: `[MQTT-...]` is a numbered clause of MQTT 5 unless "of 3.1.1" follows, `[MQTT5
//! 2.1]` and `[MQTT311 2.1]` are sections. Nothing here does I/O, keeps state or allocates while decoding: strings,
//! payloads and properties borrow the input. What it is not: a session. Order, identifiers in use and timing are
//! the business of whoever calls it.

mod ack;
mod connect;
mod error;
mod fixed_header;
pub mod limits;
mod packet;
mod properties;
mod properties_builder;
mod property;
mod property_getters;
mod publish;
mod reader;
mod reason;
mod subscribe;
mod topic;
mod writer;

pub use ack::encode_puback;
pub use ack::{Ack, Auth, Disconnect};
pub use connect::{ConnAck, Connect, Will};
pub use error::{DecodeError, EncodeError};
pub use fixed_header::PacketType;
pub use packet::{Decoded, Packet, ProtocolVersion, QoS, decode, encode};
pub use properties::Properties;
pub use properties_builder::PropertiesBuilder;
pub use property::{Property, PropertyId};
pub use publish::{Publish, encode_publish};
pub use reason::{ConnectReturnCode, ReasonCode};
pub use subscribe::{Filter, SubAck, Subscribe, UnsubAck, Unsubscribe};
pub use topic::{is_valid_filter, is_valid_name};
