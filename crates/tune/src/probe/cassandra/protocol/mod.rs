//! The native protocol of Cassandra, version 4: the frames and types that the probe needs. It does no I/O.
//!
//! Source: `doc/native_protocol_v4.spec` of Apache Cassandra. Section numbers in the comments are those of this document.

mod error;
mod frame;
mod reader;
mod request;
mod response;
mod rows;

pub(super) use error::ProtocolError;
pub(super) use frame::{HEADER_BYTES, Header};
pub(super) use request::Request;
pub(super) use response::Response;
pub(super) use rows::{Row, Rows};
