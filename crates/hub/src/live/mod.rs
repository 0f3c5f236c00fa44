//! Live subscribers: they get values after the values are durable, and no subscriber can slow down ingest.
//!
//! Ingest queues the rows of watched series with the sequence that makes them durable. When the store has reached that
//! sequence, [`Live::deliver`] moves the values to the subscribers' mailboxes. All subscribers share one copy of an update.
//! A mailbox is bounded: if a subscriber does not read, it keeps the newest value of each key and loses older ones
//! ([`Update::ts`] shows which). If even the newest values take too many bytes, the server gives the connection up
//! ([`LiveConnection::overrun`]).

mod account;
mod bus;
mod mailbox;
mod pending;
mod update;

pub use account::Overrun;
pub use bus::{Live, LiveConnection, SERIES_PER_SUBSCRIBER_MAX, Subscriber};
pub use mailbox::Updates;
pub use update::{
    MAILBOX_REDUCE_BYTES, MAILBOX_UPDATES_MAX, PENDING_REDUCE_BYTES, PENDING_UPDATES_MAX, Update,
};
