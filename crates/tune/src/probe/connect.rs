//! Chooses the probe of a target.

use std::path::Path;

use super::interface::{Probe, ProbeError};
use super::{cassandra, elasticsearch, hbase, tachograph};
use crate::endpoint::Endpoint;
use crate::target::Server;

/// Connects to a server. `client_config` is the configuration file of a client, for products whose rules read one.
pub fn connect(
    server: Server,
    endpoint: &Endpoint,
    client_config: Option<&Path>,
) -> Result<Box<dyn Probe>, ProbeError> {
    if let (Some(path), false) = (client_config, server == Server::Hbase) {
        let what = format!(
            "--client-config {}: no rule of this target reads a client's file; hbase:// takes the client's hbase-site.xml",
            path.display()
        );
        return Err(ProbeError(what));
    }
    match server {
        Server::Elasticsearch => elasticsearch::connect(endpoint),
        Server::Hbase => hbase::connect(endpoint, client_config),
        Server::Cassandra => cassandra::connect(endpoint),
        Server::Tachograph => tachograph::connect(endpoint),
    }
}
