//! Probes: connections that read the settings, facts and counters of a target.

mod cassandra;
mod connect;
mod contract;
mod elasticsearch;
mod error;
mod hbase;
mod host;
mod http;
mod local;
mod observe;
mod tachograph;

pub use connect::{Context, connect};
pub use contract::{Identity, Probe, Sample};
pub use error::ProbeError;
pub use host::{HostFiles, HostProbe, HostRoot};
pub use observe::observe;
