//! MQTT 3.1.1 and MQTT 5.0: bytes to packets and back, for servers and clients.
//!
//! Sources: OASIS "MQTT Version 3.1.1 Plus Errata 01" and "MQTT Version 5.0"; clause tags such as `[MQTT-3.3.1-4]`
//! stand beside the lines that obey them. Nothing here does I/O, keeps state or allocates while decoding: strings,
//! payloads and properties borrow the input. What it is not: a session. Order, identifiers in use and timing are
//! the business of whoever calls it.

mod ack;
mod connect;
mod error;
pub mod limits;
mod packet;
mod properties;
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
pub use packet::{Decoded, Packet, PacketType, ProtocolVersion, QoS, decode, encode};
pub use properties::{Properties, PropertiesBuilder, Property, PropertyId};
pub use publish::{Publish, encode_publish};
pub use reason::{ConnectReturnCode, ReasonCode};
pub use subscribe::{Filter, SubAck, Subscribe, UnsubAck, Unsubscribe};
pub use topic::{is_valid_filter, is_valid_name};
