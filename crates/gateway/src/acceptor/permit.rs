//! The permit of a connection.

use std::sync::Arc;

use hub::Hub;
use tokio::sync::OwnedSemaphorePermit;

use super::per_address::AddressPermit;

/// Lets one connection be open and counts it, until this is dropped. That also happens if its task panics.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    hub: Arc<Hub>,
    door: hub::Door,
    _permit: OwnedSemaphorePermit,
    /// `None` while the address of the client is not known.
    address: Option<AddressPermit>,
}

impl ConnectionPermit {
    pub(super) fn new(
        hub: Arc<Hub>,
        door: hub::Door,
        permit: OwnedSemaphorePermit,
        address: Option<AddressPermit>,
    ) -> Self {
        let counters = hub.metrics().door(door);
        counters.connections.inc();
        counters.connections_opened.inc();
        Self { hub, door, _permit: permit, address }
    }

    pub(super) fn count_for(&mut self, address: AddressPermit) {
        self.address = Some(address);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.hub.metrics().door(self.door).connections.dec();
    }
}
