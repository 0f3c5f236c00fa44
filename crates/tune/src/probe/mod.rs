//! Probes: each reads the version, the settings and the counters of a running server, and changes nothing.
//!
//! `interface.rs` says what a probe is, `connect.rs` chooses one for a target. Each product has a folder.

mod cassandra;
mod connect;
mod elasticsearch;
mod hbase;
mod http;
mod interface;
mod local;
mod observe;
mod tachograph;

pub use connect::connect;
pub use interface::{Hidden, Identity, Probe, ProbeError, Sample};
pub use observe::observation;
