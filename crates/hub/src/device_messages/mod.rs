//! Messages from the server to devices: each connection of a device has an outbox, which the door empties.
//!
//! An outbox is bounded in messages and bytes, and all outboxes together in bytes ([`limits`]). What does not fit is handled by
//! its kind:
//!
//! - Changes of attributes are *coalesced*: the outbox keeps the newest state of each key. A device that lost one reads its
//!   attributes again after the next connect.
//! - A request of an RPC is *refused*: the sender learns it from [`Delivered`].
//!
//! Both are counted ([`crate::metrics::DeviceMessageMetrics`]). An outbox wakes its door when it becomes non-empty, and not again
//! before the door has emptied it.

mod coalesce;
pub mod limits;
mod message;
mod outbox;
mod outboxes;
#[cfg(test)]
mod tests;
mod wake;

pub use crate::wake::Wake;
pub use message::{Attribute, DeviceMessage, RpcRequest};
pub use outbox::Interests;
pub use outboxes::{Delivered, DeviceOutbox, Outboxes};
pub use wake::NotifyWake;
