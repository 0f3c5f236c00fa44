//! Connects to a target.

use std::path::PathBuf;

use super::contract::Probe;
use super::error::ProbeError;
use super::host::{HostProbe, HostRoot};
use super::{cassandra, elasticsearch, hbase, tachograph};
use crate::target::{Server, Target};

/// What a probe knows beside its target.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The password of the target, if its URL has none.
    pub password: Option<String>,
    /// Whether counters are taken in a window, so that a load runs now.
    pub has_window: bool,
    /// The configuration file of a client, for products whose rules read one.
    pub client_config: Option<PathBuf>,
}

/// Connects to a target.
pub fn connect(target: &Target, context: &Context) -> Result<Box<dyn Probe>, ProbeError> {
    let client_config = context.client_config.as_deref();
    if let (Some(path), false) = (client_config, matches!(target, Target::Server(Server::Hbase, _))) {
        let reason = "only hbase:// takes the file of a client: its hbase-site.xml".to_owned();
        return Err(ProbeError::ClientConfig { path: path.to_owned(), reason });
    }
    match target {
        Target::Host(role) => Ok(Box::new(HostProbe::new(HostRoot::new("/"), *role)?)),
        Target::Server(Server::Elasticsearch, endpoint) => elasticsearch::connect(endpoint),
        Target::Server(Server::Hbase, endpoint) => hbase::connect(endpoint, client_config),
        Target::Server(Server::Cassandra, endpoint) => cassandra::connect(endpoint),
        Target::Server(Server::Tachograph, endpoint) => tachograph::connect(endpoint),
    }
}
