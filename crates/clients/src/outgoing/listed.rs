//! One entry of the list of allowed targets.

use std::net::SocketAddr;
use std::str::FromStr;

use crate::networks::Network;

use crate::limits::HOST_BYTES_MAX;

/// One entry: what it names, and its port if it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listed {
    /// `*`: all servers.
    All,
    /// Addresses.
    Network(Network, Option<u16>),
    /// A name in lower case.
    Name(String, Option<u16>),
}

/// A text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a host, an address or a network is expected, with or without a port, such as broker.example.com:1883, localhost, 10.0.0.0/8 or \
     [2001:db8::1]:80; * is all servers"
)]
pub struct AllowedTargetError;

impl Listed {
    /// Whether it names a host or its address.
    pub(super) fn names(&self, host: &str, address: SocketAddr) -> bool {
        let (is_it, port) = match self {
            Self::All => return false,
            Self::Network(network, port) => (network.contains(address.ip().to_canonical()), port),
            Self::Name(name, port) => (host.trim_end_matches('.').eq_ignore_ascii_case(name), port),
        };
        is_it && port.is_none_or(|port| port == address.port())
    }
}

impl FromStr for Listed {
    type Err = AllowedTargetError;

    fn from_str(text: &str) -> Result<Self, AllowedTargetError> {
        if text == "*" {
            return Ok(Self::All);
        }
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network, None));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port_of(port)?)),
            None => (text, None),
        };
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Some(address) = bracketed {
            let address: Network = address.parse().map_err(|_| AllowedTargetError)?;
            return Ok(Self::Network(address, port));
        }
        if let Ok(network) = host.parse() {
            return Ok(Self::Network(network, port));
        }
        let is_label = |label: &str| {
            let is_sign = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !label.is_empty() && label.chars().all(is_sign)
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        // A text such as 10.0.0 is probably an address with a mistake.
        let is_number = name.chars().all(|c| c.is_ascii_digit() || c == '.');
        if name.len() > HOST_BYTES_MAX || is_number || !name.split('.').all(is_label) {
            return Err(AllowedTargetError);
        }
        Ok(Self::Name(name.to_ascii_lowercase(), port))
    }
}

fn port_of(text: &str) -> Result<u16, AllowedTargetError> {
    // `parse` of a number takes a sign.
    let port = text.parse().ok().filter(|port| *port != 0 && !text.starts_with('+'));
    port.ok_or(AllowedTargetError)
}
