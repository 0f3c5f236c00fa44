//! Connects to a target.

use std::path::PathBuf;

use clients::sql::Address as SqlAddress;

use super::contract::Probe;
use super::error::ProbeError;
use super::host::{HostProbe, HostRoot};
use super::machine_facts::WithMachineFacts;
use super::mysql::MysqlProbe;
use super::postgresql::PostgresqlProbe;
use super::redis::RedisProbe;
use super::{cassandra, elasticsearch, hbase, tachograph};
use crate::target::{HostRole, Server, Target};

/// The circumstances of a probe.
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
    let machine = || HostProbe::new(HostRoot::new("/"), HostRole::Server).ok();
    match target {
        Target::Host(role) => Ok(Box::new(HostProbe::new(HostRoot::new("/"), *role)?)),
        Target::Mysql(address) => {
            let address = with_password(address, context);
            let is_local = is_loopback(address.resolve());
            let probe = MysqlProbe::connect(&address)?;
            Ok(Box::new(WithMachineFacts::new(probe, is_local.then(machine).flatten(), context.has_window)))
        }
        Target::Postgresql(address) => {
            let address = with_password(address, context);
            let is_local = is_loopback(address.resolve());
            let probe = PostgresqlProbe::connect(&address)?;
            Ok(Box::new(WithMachineFacts::new(probe, is_local.then(machine).flatten(), context.has_window)))
        }
        Target::Redis(address) => {
            let mut address = address.clone();
            address.login.password = address.login.password.or_else(|| context.password.clone());
            let is_local = is_loopback(address.resolve());
            let probe = RedisProbe::connect(&address, context.has_window)?;
            Ok(Box::new(WithMachineFacts::new(probe, is_local.then(machine).flatten(), context.has_window)))
        }
        Target::Server(Server::Elasticsearch, endpoint) => elasticsearch::connect(endpoint),
        Target::Server(Server::Hbase, endpoint) => hbase::connect(endpoint, client_config),
        Target::Server(Server::Cassandra, endpoint) => cassandra::connect(endpoint),
        Target::Server(Server::Tachograph, endpoint) => tachograph::connect(endpoint),
    }
}

fn with_password(address: &SqlAddress, context: &Context) -> SqlAddress {
    let mut address = address.clone();
    if address.password.is_empty() {
        address.password = context.password.clone().unwrap_or_default();
    }
    address
}

/// Whether all addresses are of this machine.
fn is_loopback(addresses: Result<Vec<std::net::SocketAddr>, String>) -> bool {
    addresses.is_ok_and(|all| all.iter().all(|address| address.ip().is_loopback()))
}
