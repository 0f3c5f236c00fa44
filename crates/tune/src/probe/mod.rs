//! Probes: connections that read the settings, facts and counters of a target.

mod cassandra;
mod connect;
mod contract;
mod convert;
mod elasticsearch;
mod error;
mod hbase;
mod host;
mod http;
mod local;
mod machine_facts;
mod mysql;
mod observe;
mod postgresql;
mod redis;
mod redis_keys;
mod sql;
mod tachograph;

pub use connect::{Context, connect};
pub use contract::{Identity, Probe, Sample, Start};
pub(crate) use convert::setting as parse_value;
pub use error::{ProbeError, StatementError};
pub use host::{HostFiles, HostProbe, HostRoot};
pub use observe::observe;
