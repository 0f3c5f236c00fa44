//! The limits that each door has, under the same names in its section of the configuration.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// The limits of one door. Operators set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorLimits {
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections at once from one address (of IPv6: from a /64 network).
    pub connections_per_address_max: usize,
    /// Most new connections in a second, over all addresses; `None` for no limit.
    pub connections_per_second_max: Option<NonZeroU32>,
    /// Most requests in a second, over all connections; `None` for no limit.
    pub requests_per_second_max: Option<NonZeroU32>,
}

impl DoorLimits {
    /// No limit but this number of connections.
    pub const fn of_connections(connections_max: usize) -> Self {
        Self {
            connections_max,
            connections_per_address_max: connections_max,
            connections_per_second_max: None,
            requests_per_second_max: None,
        }
    }

    /// The value of a limit; `None` if the door does not have it.
    pub(crate) fn value(&self, limit: DoorLimit) -> Option<usize> {
        let rate = |rate: Option<NonZeroU32>| rate.map(|rate| rate.get() as usize);
        match limit {
            DoorLimit::Connections => Some(self.connections_max),
            DoorLimit::ConnectionsPerAddress => Some(self.connections_per_address_max),
            DoorLimit::ConnectionsPerSecond => rate(self.connections_per_second_max),
            DoorLimit::RequestsPerSecond => rate(self.requests_per_second_max),
        }
    }
}

/// A limit of a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoorLimit {
    Connections,
    ConnectionsPerAddress,
    ConnectionsPerSecond,
    RequestsPerSecond,
}

impl DoorLimit {
    pub(crate) const ALL: [Self; 4] =
        [Self::Connections, Self::ConnectionsPerAddress, Self::ConnectionsPerSecond, Self::RequestsPerSecond];

    /// The name of its setting, which is also the reason in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections_max",
            Self::ConnectionsPerAddress => "connections_per_address_max",
            Self::ConnectionsPerSecond => "connections_per_second_max",
            Self::RequestsPerSecond => "requests_per_second_max",
        }
    }
}

/// Something was refused because it would exceed a limit of a door. The text names the limit, its value and the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) struct LimitExceeded {
    pub(crate) door: hub::Door,
    pub(crate) limit: DoorLimit,
    pub(crate) value: usize,
    /// The address of the peer, if it is known.
    pub(crate) address: Option<IpAddr>,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.limit {
            DoorLimit::Connections => write!(f, "all {value} connections of this door are in use")?,
            DoorLimit::ConnectionsPerAddress => match self.address {
                Some(address) => write!(f, "{address} has {value} connections, the limit for one address")?,
                None => write!(f, "one address has {value} connections, the limit")?,
            },
            DoorLimit::ConnectionsPerSecond => write!(f, "this door takes {value} new connections a second")?,
            DoorLimit::RequestsPerSecond => write!(f, "this door takes {value} requests a second")?,
        }
        let remedy = match self.limit {
            DoorLimit::ConnectionsPerAddress => "close some or raise it",
            _ => "try again in a moment",
        };
        write!(f, " ({}.{}); {remedy}", self.door.name(), self.limit.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_limit_value_and_remedy() {
        let exceeded = |limit, address: Option<&str>| {
            let address = address.map(|text| text.parse().unwrap());
            LimitExceeded { door: hub::Door::Http, limit, value: 2, address }.to_string()
        };
        assert_eq!(
            exceeded(DoorLimit::Connections, None),
            "all 2 connections of this door are in use (http.connections_max); try again in a moment"
        );
        assert_eq!(
            exceeded(DoorLimit::ConnectionsPerAddress, Some("192.0.2.1")),
            "192.0.2.1 has 2 connections, the limit for one address (http.connections_per_address_max); \
             close some or raise it"
        );
        assert_eq!(
            exceeded(DoorLimit::RequestsPerSecond, None),
            "this door takes 2 requests a second (http.requests_per_second_max); try again in a moment"
        );
    }
}
