//! Opens listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};

use anyhow::anyhow;
use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::BACKLOG;

/// Warns of an address at which other machines can connect without TLS.
pub(super) fn warn_if_exposed(door: &str, address: SocketAddr) {
    if !address.ip().is_loopback() {
        tracing::warn!(door, %address, "reachable from other machines, without TLS: tokens and passwords can be read on the way");
    }
}

/// Listens on an address. Errors name `door`, and `option`, which sets the address: `--mqtt` or `mqtt.tls_listen =`.
pub(super) fn bind(door: &str, option: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    try_bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "the {door} address {address} is taken by another process; stop it, or choose another port with \
             {option} {}:{} (or {option} {0}:0 for any free one)",
            host(address),
            address.port().saturating_add(1)
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen on the {door} address {address}")),
    })
}

fn try_bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart does not need to wait for old connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn host(address: SocketAddr) -> String {
    if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_with_the_flag_for_another() {
        let first = bind("MQTT", "--mqtt", "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = first.local_addr().unwrap();
        let error = bind("MQTT", "--mqtt", address).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--mqtt 127.0.0.1:0"), "{error}");
    }

    #[test]
    fn an_address_of_another_machine_is_an_error_with_its_cause() {
        let error = bind("HTTP", "--http", "192.0.2.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "cannot listen on the HTTP address 192.0.2.1:80");
        assert!(error.downcast_ref::<io::Error>().is_some());
    }
}
