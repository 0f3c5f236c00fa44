//! Redis and compatible servers.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys, `protocol/` is the client of the load, with its commands
//! in `command.rs`, keys in `keys.rs`, values in `data.rs`, and random numbers in `random.rs`. `control.rs` is a
//! connection outside of the load, for the properties of the server and the check of the data.

mod command;
pub mod control;
mod data;
mod driver;
mod keys;
mod options;
mod protocol;
mod random;

pub use data::{Content, Size};
pub(crate) use driver::KIND;
pub use keys::{Keys, Pattern};
pub use protocol::{Command, GroupConfig, Login, Redis};
