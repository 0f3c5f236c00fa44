//! The targets: one folder for each kind of server, with its protocol, its options and its checks.
//!
//! In each folder, `driver.rs` is the interface to the runner (a `driver::Driver`), and `protocol.rs` or `blocking.rs`
//! is the interface to an engine (a [`crate::protocol::Protocol`] or [`crate::protocol::Blocking`]). Here, `driver.rs`
//! has the trait that all implement, `registry.rs` the drivers by name, and `plan.rs` the conversion of a phase into
//! the plan of an engine.

mod broker;
mod commands;
mod dashboards;
pub(crate) mod driver;
pub(crate) mod es;
mod exchange;
mod gsn;
mod hbase;
pub mod host;
pub mod http;
mod influx;
pub mod ledger;
pub mod mqtt;
mod opentsdb;
pub(crate) mod plan;
mod prometheus;
pub(crate) mod reads;
pub mod redis;
mod registry;
mod request;
pub mod sql;
pub mod tcp;
mod timeseries;
mod tsbs;

pub use driver::Counts;
pub(crate) use registry::{driver_of, results};
