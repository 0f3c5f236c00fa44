//! How many connections each address has, so that one peer cannot take all seats of a door.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use hub::logins::network;
use parking_lot::Mutex;

/// The addresses that have connections, and a bound for each of them.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    connections: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_address_max: usize,
}

/// One connection of an address, until this is dropped.
#[derive(Debug)]
pub(crate) struct SourceSeat {
    sources: Sources,
    network: IpAddr,
}

impl Sources {
    /// Bounds the connections of each address to `per_address_max`; 0 counts as 1.
    pub(crate) fn new(per_address_max: usize) -> Self {
        Self { connections: Arc::default(), per_address_max: per_address_max.max(1) }
    }

    /// A seat for a peer with this address, unless it has as many as it may.
    pub(crate) fn seat(&self, address: IpAddr) -> Option<SourceSeat> {
        let network = network(address);
        let mut connections = self.connections.lock();
        let count = connections.entry(network).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(SourceSeat { sources: self.clone(), network })
    }
}

impl Drop for SourceSeat {
    fn drop(&mut self) {
        let mut connections = self.sources.connections.lock();
        if let Some(count) = connections.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let sources = Sources::new(2);
        let first = sources.seat(address("192.0.2.1")).unwrap();
        let second = sources.seat(address("::ffff:192.0.2.1")).unwrap();
        assert!(sources.seat(address("192.0.2.1")).is_none());
        assert!(sources.seat(address("192.0.2.2")).is_some());
        drop(first);
        let third = sources.seat(address("192.0.2.1"));
        assert!(third.is_some());
        drop((second, third));
        assert!(sources.connections.lock().is_empty(), "an address without connections takes no memory");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let sources = Sources::new(1);
        let _first = sources.seat(address("2001:db8:1:2::1")).unwrap();
        assert!(sources.seat(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(sources.seat(address("2001:db8:1:3::1")).is_some());
    }
}
