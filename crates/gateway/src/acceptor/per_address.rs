//! Limits the connections of each address, so one peer cannot use up all connections of a door.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use hub::logins::network;
use parking_lot::Mutex;

/// Counts the connections of each address and bounds them.
#[derive(Debug, Clone)]
pub(crate) struct AddressLimiter {
    connections: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_address_max: usize,
}

/// Counts one connection of an address, until this is dropped.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    limiter: AddressLimiter,
    network: IpAddr,
}

impl AddressLimiter {
    /// Bounds the connections of each address to `per_address_max`; 0 counts as 1.
    pub(crate) fn new(per_address_max: usize) -> Self {
        Self { connections: Arc::default(), per_address_max: per_address_max.max(1) }
    }

    /// A permit for a connection of this address, unless the address has as many as it may.
    pub(crate) fn acquire(&self, address: IpAddr) -> Option<AddressPermit> {
        let network = network(address);
        let mut connections = self.connections.lock();
        let count = connections.entry(network).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(AddressPermit { limiter: self.clone(), network })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut connections = self.limiter.connections.lock();
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
        let limiter = AddressLimiter::new(2);
        let first = limiter.acquire(address("192.0.2.1")).unwrap();
        let second = limiter.acquire(address("::ffff:192.0.2.1")).unwrap();
        assert!(limiter.acquire(address("192.0.2.1")).is_none());
        assert!(limiter.acquire(address("192.0.2.2")).is_some());
        drop(first);
        let third = limiter.acquire(address("192.0.2.1"));
        assert!(third.is_some());
        drop((second, third));
        assert!(limiter.connections.lock().is_empty(), "an address without connections uses no memory");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let limiter = AddressLimiter::new(1);
        let _first = limiter.acquire(address("2001:db8:1:2::1")).unwrap();
        assert!(limiter.acquire(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(limiter.acquire(address("2001:db8:1:3::1")).is_some());
    }
}
