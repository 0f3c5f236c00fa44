//! Publishers and subscribers at an MQTT broker: pairs, fan-out, sessions that are away and come back, and connections.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys, `protocol.rs` is the client, `message.rs` has its messages,
//! and `sequence.rs` finds messages that were lost, doubled or reordered. `tally.rs` adds up what the clients of a phase
//! sent and received.

mod driver;
mod message;
mod options;
mod protocol;
mod sequence;
mod tally;

pub(crate) use driver::KIND;
pub(super) use sequence::{Arrived, Sequence};
pub(super) use tally::{Deliveries, Published, Received};
