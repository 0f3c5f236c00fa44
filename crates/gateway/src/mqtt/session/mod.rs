//! One MQTT session as a state machine: it takes packets, and produces replies and rows. The worker owns sockets and time.
//!
//! The session answers a message in three steps. Its rows enter the worker's batch. Its ack waits beside them. The worker sends
//! the ack when the batch is as durable as the device's profile requires. The session writes at once only answers that promise
//! nothing about data (CONNACK, PINGRESP, SUBACK, PUBCOMP).

mod chunk_lengths;
mod client_acks;
mod connect;
mod connect_terms;
mod connected;
mod context;
mod device_api;
mod end;
mod gateway_api;
mod gateway_devices;
mod login;
mod machine;
mod new_certificate;
mod outgoing;
mod packages;
mod packets;
mod parts;
mod payload_forms;
mod peer;
mod provisioning;
mod publish;
mod refused_connect;
mod refused_message;
mod subscribing;
mod to_device;
mod topic_access;
mod topics;
mod will;

pub(crate) use connected::Connected;
pub(crate) use context::Context;
pub(crate) use end::{PacketError, SessionEnd};
pub(crate) use machine::{Session, answer_malformed_connect};
pub(crate) use topic_access::is_open_to;
