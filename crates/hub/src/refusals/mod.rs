//! Refused messages of each device, for operators.
//!
//! MQTT 3.1.1 has no negative ack: the server acks a message that it stores as a dead letter, so the device never learns of
//! the refusal. This module counts the refused messages of each device, with the time and reason of the last one, and
//! decides which refusals get a line in the log. The counts are in memory and start with the server. The messages themselves
//! are in [`DEAD_LETTER_TABLE`](crate::DEAD_LETTER_TABLE), and so is the last reason from before the start.

mod counts;

pub use counts::{LogLine, Refusals, Refused};
