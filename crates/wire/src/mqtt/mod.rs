//! MQTT 3.1.1 and MQTT 5.0: bytes to packets and back, for servers and clients.
//!
//! Sources: OASIS "MQTT Version 3.1.1 Plus Errata 01" and "MQTT Version 5.0". Clause tags are next to the lines that obey
//! them: `[MQTT-3.3.1-4]` is a numbered MQTT clause 5 unless "of 3.1.1" follows, `[MQTT5 2.1]` and `[MQTT311 2.1]` are
//! sections.
//!
//! The codec does no I/O, keeps no state and does not allocate while it decodes: strings, payloads and properties borrow
//! the input. It is not a session: the caller checks the order of packets, packet identifiers in use and timeouts. [`client`]
//! is the session of a client on top of it.

mod ack;
pub mod client;
mod connect;
mod error;
mod fixed_header;
pub mod limits;
mod packet;
mod packet_type;
mod properties;
mod properties_builder;
mod property;
mod property_getters;
mod publish;
mod qos;
mod reader;
mod reason;
mod sent_aliases;
mod subscribe;
mod topic;
mod version;
mod writer;

pub use ack::encode_puback;
pub use ack::{Ack, Auth, Disconnect};
pub use connect::{ConnAck, Connect, Will};
pub use error::{DecodeError, EncodeError};
pub use fixed_header::whole_packets;
pub use packet::{Decoded, Packet, decode, encode};
pub use packet_type::PacketType;
pub use properties::Properties;
pub use properties_builder::PropertiesBuilder;
pub use property::{Property, PropertyId};
pub use publish::{Publish, encode_publish, encode_publish_head};
pub use qos::QoS;
pub use reason::{ConnectReturnCode, ReasonCode};
pub use sent_aliases::{SentAliases, TopicForm};
pub use subscribe::{Filter, SubAck, Subscribe, UnsubAck, Unsubscribe};
pub use topic::{is_valid_filter, is_valid_name};
pub use version::ProtocolVersion;
