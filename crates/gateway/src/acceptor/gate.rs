//! Admits connections and requests of a door within its limits, and counts what it refuses.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::Hub;
use model::TokenBucket;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::per_address::AddressLimiter;
use super::permit::ConnectionPermit;
use crate::door::{DoorLimit, DoorLimits, LimitExceeded};
use crate::refusals;

/// The limits of a running door.
#[derive(Debug)]
pub(crate) struct Gate {
    hub: Arc<Hub>,
    door: hub::Door,
    limits: DoorLimits,
    permits: Arc<Semaphore>,
    permits_max: u32,
    addresses: AddressLimiter,
    /// New connections of a second.
    connections: Option<Mutex<TokenBucket>>,
    /// Requests of a second.
    requests: Option<Mutex<TokenBucket>>,
}

impl Gate {
    /// Shows the limits in the metrics.
    pub(crate) fn new(hub: Arc<Hub>, door: hub::Door, limits: DoorLimits) -> Arc<Self> {
        for limit in DoorLimit::ALL {
            if let Some(value) = limits.value(limit) {
                hub.metrics().set_door_limit(door, limit.name(), value);
            }
        }
        // A semaphore has fewer permits than `usize::MAX`.
        let permits_max = u32::try_from(limits.connections_max.max(1)).unwrap_or(u32::MAX).min(u32::MAX >> 4);
        let bucket =
            |rate: Option<NonZeroU32>| rate.map(|rate| Mutex::new(TokenBucket::new(rate, Instant::now())));
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(permits_max as usize)),
            permits_max,
            addresses: AddressLimiter::new(limits.connections_per_address_max),
            connections: bucket(limits.connections_per_second_max),
            requests: bucket(limits.requests_per_second_max),
            hub,
            door,
            limits,
        })
    }

    /// Admits a connection. `address` is `None` while the address of the client is not known; then
    /// [`admit_address`](Self::admit_address) follows.
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Result<ConnectionPermit, LimitExceeded> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| self.exceeded(DoorLimit::Connections, address))?;
        let address_permit = address.map(|address| self.address_permit(address)).transpose()?;
        if let Some(connections) = &self.connections {
            let taken = connections.lock().take(Instant::now());
            taken.map_err(|_| self.exceeded(DoorLimit::ConnectionsPerSecond, address))?;
        }
        Ok(ConnectionPermit::new(Arc::clone(&self.hub), self.door, permit, address_permit))
    }

    /// Counts an admitted connection for the address of its client.
    pub(crate) fn admit_address(
        &self,
        permit: &mut ConnectionPermit,
        address: IpAddr,
    ) -> Result<(), LimitExceeded> {
        permit.count_for(self.address_permit(address)?);
        Ok(())
    }

    fn address_permit(&self, address: IpAddr) -> Result<super::AddressPermit, LimitExceeded> {
        let permit = self.addresses.acquire(address);
        permit.ok_or_else(|| self.exceeded(DoorLimit::ConnectionsPerAddress, Some(address)))
    }

    /// Admits and counts a request.
    pub(crate) fn admit_request(&self) -> Result<(), LimitExceeded> {
        self.take_request().map_err(|_| self.exceeded(DoorLimit::RequestsPerSecond, None))?;
        self.hub.metrics().door(self.door).requests.inc();
        Ok(())
    }

    /// Admits a request without counting it. Otherwise it returns the time to wait.
    pub(crate) fn take_request(&self) -> Result<(), Duration> {
        self.requests.as_ref().map_or(Ok(()), |requests| requests.lock().take(Instant::now()))
    }

    /// Takes back the admission of a request that will come again.
    pub(crate) fn give_back_request(&self) {
        if let Some(requests) = &self.requests {
            requests.lock().give_back();
        }
    }

    /// Counts a refused connection or request, and logs it at a bounded pace.
    pub(crate) fn refused(&self, exceeded: &LimitExceeded, peer: Option<SocketAddr>) {
        self.hub.metrics().refused(self.door, exceeded.limit.name());
        refusals::door_limit(&self.hub, exceeded, peer);
    }

    /// Open connections.
    pub(crate) fn open(&self) -> usize {
        self.permits_max as usize - self.permits.available_permits()
    }

    /// The most connections at once.
    pub(crate) fn connections_max(&self) -> usize {
        self.permits_max as usize
    }

    /// Waits until no connection is open.
    pub(crate) async fn all_closed(&self) {
        // Nobody closes the semaphore.
        let _ = self.permits.acquire_many(self.permits_max).await;
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(super) fn door(&self) -> hub::Door {
        self.door
    }

    fn exceeded(&self, limit: DoorLimit, address: Option<IpAddr>) -> LimitExceeded {
        let value = self.limits.value(limit).unwrap_or_default();
        LimitExceeded { door: self.door, limit, value, address }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use hub::registry::Registry;
    use model::limits::IngestLimits;
    use store::MemoryStore;

    use super::*;

    fn gate(limits: DoorLimits) -> (Arc<Gate>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let (registry, _) = Registry::open(&directory.path().join("registry.db")).unwrap();
        let store = Arc::new(MemoryStore::new());
        let kv = Arc::new(kv::MemoryStore::new());
        let hub =
            Hub::start(store, kv, registry, IngestLimits::default(), Arc::new(hub::Metrics::new())).unwrap();
        (Gate::new(hub, hub::Door::Postgres, limits), directory)
    }

    fn refused_by(result: Result<ConnectionPermit, LimitExceeded>) -> &'static str {
        result.unwrap_err().limit.name()
    }

    #[test]
    fn each_limit_refuses_and_what_was_taken_comes_back() {
        let limits = DoorLimits { connections_per_address_max: 1, ..DoorLimits::of_connections(2) };
        let (gate, _directory) = gate(limits);
        let [first, second, third] = [1, 2, 3].map(|last| Some(IpAddr::from([192, 0, 2, last])));
        let one = gate.admit(first).unwrap();
        assert_eq!(refused_by(gate.admit(first)), "connections_per_address_max");
        assert_eq!(gate.open(), 1, "a refused connection holds no permit");
        let _two = gate.admit(second).unwrap();
        assert_eq!(refused_by(gate.admit(third)), "connections_max");
        drop(one);
        let mut behind_proxy = gate.admit(None).unwrap();
        assert!(gate.admit_address(&mut behind_proxy, second.unwrap()).is_err());
        gate.admit_address(&mut behind_proxy, first.unwrap()).unwrap();
        gate.hub.close().unwrap();
    }

    #[test]
    fn the_rates_refuse_and_the_metrics_show_the_limits() {
        let limits = DoorLimits {
            connections_per_second_max: NonZeroU32::new(1),
            requests_per_second_max: NonZeroU32::new(1),
            ..DoorLimits::of_connections(100)
        };
        let (gate, _directory) = gate(limits);
        drop(gate.admit(None).unwrap());
        assert_eq!(refused_by(gate.admit(None)), "connections_per_second_max");
        gate.admit_request().unwrap();
        let exceeded = gate.admit_request().unwrap_err();
        gate.refused(&exceeded, None);
        gate.give_back_request();
        gate.take_request().unwrap();
        let text = gate.hub.metrics_text();
        for line in [
            r#"tacho_door_limit{door="postgres",limit="connections_max"} 100"#,
            r#"tacho_door_limit{door="postgres",limit="requests_per_second_max"} 1"#,
            r#"tacho_refusals_total{door="postgres",reason="requests_per_second_max"} 1"#,
            r#"tacho_requests_total{door="postgres"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        gate.hub.close().unwrap();
    }

    #[test]
    fn a_connection_whose_task_panics_is_counted_no_more_and_frees_its_permits() {
        let (gate, _directory) = gate(DoorLimits::of_connections(1));
        let permit = gate.admit(Some([127, 0, 0, 1].into())).unwrap();
        let open = || gate.hub.metrics().door(hub::Door::Postgres).connections.get();
        assert_eq!((open(), gate.open()), (1, 1));
        let serve = AssertUnwindSafe(move || {
            let _permit = permit;
            panic!("a bug on purpose");
        });
        assert!(catch_unwind(serve).is_err());
        assert_eq!((open(), gate.open()), (0, 0));
        gate.hub.close().unwrap();
    }
}
