//! Redis and compatible servers.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys, `protocol/` is the client of the load, with its commands
//! in `command.rs`, keys in `keys.rs`, values in `data.rs`, and random numbers in `random.rs`. `source.rs` samples the counters
//! of the server.

mod command;
mod data;
mod driver;
mod keys;
mod options;
mod protocol;
mod random;
mod source;

pub use data::{Content, Size};
pub(crate) use driver::KIND;
pub use keys::{Keys, Pattern};
pub use protocol::{Command, GroupConfig, Redis};
