//! The machine of a server that runs on this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs as _};

use super::host::{HostFiles, machine};
use crate::value::Value;

/// Whether all addresses of a host are those of this machine itself (127.0.0.1, ::1).
pub(super) fn is_local(host: &str) -> bool {
    let Ok(addresses) = (host, 0).to_socket_addrs() else { return false };
    let mut addresses = addresses.map(|address| address.ip()).peekable();
    addresses.peek().is_some() && addresses.all(|address: IpAddr| address.is_loopback())
}

/// What rules of servers read about their machine. A server elsewhere has none of it.
pub(super) fn of_host(host: &str, files: &dyn HostFiles) -> BTreeMap<String, Value> {
    if is_local(host) { machine(files) } else { BTreeMap::new() }
}
