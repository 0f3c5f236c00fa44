//! RPC: the server calls procedures of devices, and devices call procedures of the server. The model is ThingsBoard's.
//!
//! A call is *pending* until its end: a one-way call until a connection of the device has taken it, a two-way call until the
//! device has answered, both at most until their time is over. A connection that subscribes to RPC requests gets the pending
//! calls of its device, so a call also reaches a device that connects before the time is over. Numbers of requests are
//! unique among the pending calls of a device, and do not repeat soon. An answer that names no pending call is ignored and
//! counted.

mod client;
mod error;
pub mod limits;
mod pending;
mod request;

pub use client::{SessionLimits, answer_to_device};
pub use error::RpcError;
pub(crate) use pending::Calls;
pub use request::RpcCall;
