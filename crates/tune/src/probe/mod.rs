//! Probes: connections that read the settings, facts and counters of a target.

mod connect;
mod contract;
mod convert;
mod error;
mod host;
mod located;
mod mysql;
mod observe;
mod postgresql;
mod redis;
mod redis_keys;
mod sql;

pub use connect::{Context, connect};
pub use contract::{Identity, Probe, Sample};
pub use error::ProbeError;
pub use host::{HostFiles, HostProbe, HostRoot};
pub use observe::observe;
