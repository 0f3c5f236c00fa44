//! Connections themselves: how many can exist, and how many can be opened per second.
//!
//! `driver.rs` runs the scenarios, `test/` has their keys, `protocol.rs` is the client, with its requests in
//! `application.rs`. `addresses.rs` has the local addresses, `ports.rs` the need for ports, `sentences.rs` the findings.

pub(crate) mod addresses;
mod application;
mod driver;
pub(crate) mod ports;
mod protocol;
mod sentences;
mod test;

pub use application::Application;
pub(crate) use driver::KIND;
pub use protocol::{Config, Tcp};
