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
    _address: AddressPermit,
}

impl ConnectionPermit {
    pub(super) fn new(
        hub: Arc<Hub>,
        door: hub::Door,
        permit: OwnedSemaphorePermit,
        address: AddressPermit,
    ) -> Self {
        let counters = hub.metrics().door(door);
        counters.connections.inc();
        counters.connections_opened.inc();
        Self { hub, door, _permit: permit, _address: address }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.hub.metrics().door(self.door).connections.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use hub::registry::Registry;
    use model::limits::IngestLimits;
    use store::MemoryStore;
    use tokio::sync::Semaphore;

    use super::super::per_address::AddressLimiter;
    use super::*;

    #[test]
    fn a_connection_whose_task_panics_is_counted_no_more_and_frees_its_permits() {
        let directory = tempfile::tempdir().unwrap();
        let (registry, _) = Registry::open(&directory.path().join("registry.db")).unwrap();
        let store = Arc::new(MemoryStore::new());
        let hub = Hub::start(store, registry, IngestLimits::default(), Arc::new(hub::Metrics::new()));
        let permits = Arc::new(Semaphore::new(1));
        let address = AddressLimiter::new(1).acquire([127, 0, 0, 1].into()).unwrap();
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let permit = ConnectionPermit::new(Arc::clone(&hub), hub::Door::Postgres, permit, address);
        let open = || hub.metrics().door(hub::Door::Postgres).connections.get();
        assert_eq!((open(), permits.available_permits()), (1, 0));
        let serve = AssertUnwindSafe(move || {
            let _permit = permit;
            panic!("a bug on purpose");
        });
        assert!(catch_unwind(serve).is_err());
        assert_eq!((open(), permits.available_permits()), (0, 1));
        hub.close().unwrap();
    }
}
