//! RPC: the server calls procedures of devices, and devices call procedures of the server. The model is ThingsBoard's.
//!
//! A call is *pending* until its end: a one-way call until a connection of the device has taken it, a two-way call until the
//! device has answered, both at most until their time is over. A connection that subscribes to RPC requests gets the pending
//! calls of its device, so a call also reaches a device that connects before the time is over. Numbers of requests are
//! unique among the pending calls of a device, and do not repeat soon. An answer that names no pending call is ignored and
//! counted.
//!
//! A *stored* call (ThingsBoard's persistent RPC) survives a restart and waits for its device until it expires. Its caller
//! gets an id and asks for its status later. Every connection that subscribes gets the open stored calls of its device.

mod client;
mod error;
mod index;
pub mod limits;
mod pending;
mod record;
mod request;
mod status;
mod stored;

pub use client::{SessionLimits, answer_to_device};
pub use error::RpcError;
pub(crate) use pending::Calls;
pub use record::{StoredCall, Storing};
pub use request::RpcCall;
pub use status::RpcStatus;
pub use stored::Delivery;
pub(crate) use stored::StoredCalls;
