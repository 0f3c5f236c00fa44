//! The systems under load: one folder for each kind of server, with its protocol, its options and its checks.
//!
//! In each folder, `driver.rs` is the interface to the runner (a [`driver::Driver`]), and `protocol.rs` or `blocking.rs`
//! is the interface to an engine (a [`load::protocol::Protocol`] or [`load::protocol::Blocking`]). Here, `driver.rs`
//! has the trait that all implement, `registry.rs` the drivers by name, and `plan.rs` the conversion of a phase into
//! the plan of an engine.
//!
//! Our own server is one of them: the drivers speak the protocols that it offers, and use no internal interface.

mod broker;
pub mod command_line;
mod commands;
mod context;
mod dashboards;
mod devices;
pub mod driver;
mod es;
mod exchange;
mod gsn;
mod hbase;
mod hitsdb;
pub mod host;
pub mod http;
mod influx;
pub mod ledger;
mod limits;
pub mod mqtt;
mod opentsdb;
pub mod plan;
mod prometheus;
mod reads;
pub mod redis;
mod registry;
mod request;
mod server;
mod sources;
pub mod sql;
pub mod tcp;
mod timeseries;
mod tsbs;

pub use context::{Context, NAME};
pub use driver::Counts;
pub use registry::{driver_of, results};
