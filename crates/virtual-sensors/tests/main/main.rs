//! Virtual sensors over a hub on the reference stores.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod external_sources;
mod permissions;
mod turns;
mod virtual_sensors;

use std::sync::Arc;
use std::time::Duration;

use ::virtual_sensors::VirtualSensors;
use hub::caller::{Caller, Role};
use hub::registry::{Device, NewDevice, Registry};
use hub::{Durability, Hub, Metrics, Order};
use kv::{Direction, KeyRange, KeyValueStore, WriteBatch};
use model::limits::{IngestLimits, Portion};
use model::{Batch, TimeRange, Timestamp, ValueRef};
use store::Store;
use store::memory::MemoryStore;

/// Ends a test that hangs. No test waits this long otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    store: Arc<MemoryStore>,
    kv: Arc<kv::MemoryStore>,
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    device: Arc<Device>,
    _directory: tempfile::TempDir,
}

fn fixture() -> Fixture {
    fixture_on(Portion::ALL)
}

/// A fixture with bounds of this portion of memory.
fn fixture_on(memory: Portion) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let new = NewDevice { name: "car", ..NewDevice::default() };
    let device = registry.add_device(registry.default_tenant(), new).unwrap().device;
    let (store, kv) = (Arc::new(MemoryStore::new()), Arc::new(kv::MemoryStore::new()));
    let (hub, sensors) = start(memory, registry, &store, &kv);
    Fixture { store, kv, hub, sensors, device, _directory: directory }
}

fn start(
    memory: Portion,
    registry: Registry,
    store: &Arc<MemoryStore>,
    kv: &Arc<kv::MemoryStore>,
) -> (Arc<Hub>, Arc<VirtualSensors>) {
    let (limits, metrics) = (IngestLimits::default(), Arc::new(Metrics::new()));
    let shared = || (Arc::clone(store) as Arc<dyn Store>, Arc::clone(kv) as Arc<dyn KeyValueStore>);
    let (rows, keys) = shared();
    let hub = Hub::start_on(memory, rows, keys, registry, limits, metrics).unwrap();
    let (rows, keys) = shared();
    let sensors = VirtualSensors::new(memory, Arc::clone(&hub), rows, keys);
    (hub, sensors)
}

impl Fixture {
    /// The administrator of the device's tenant.
    fn administrator(&self) -> Caller {
        Caller::local(self.device.tenant)
    }

    /// Rows of the device: times in microseconds and speeds.
    fn rows(&self, rows: &[(i64, ValueRef<'_>)]) {
        let series = self.hub.series_of(&self.device).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for (ts, value) in rows {
            builder.field("speed", *value);
            builder.row(series, Timestamp::from_micros(*ts));
        }
        builder.finish();
        self.hub.ingest(&batch, Durability::Fsync).unwrap();
    }

    /// The server after a crash, with the keys that were stored before.
    fn crashed(self, kv: Arc<kv::MemoryStore>) -> Self {
        let Self { store, hub, sensors, device, _directory, .. } = self;
        drop((sensors, hub));
        let (registry, _) = Registry::open(&_directory.path().join("registry.sqlite")).unwrap();
        let (hub, sensors) = start(Portion::ALL, registry, &store, &kv);
        Self { store, kv, hub, sensors, device, _directory }
    }
}

async fn until(is_done: impl Fn() -> bool) {
    let wait = async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it happens");
}

fn copy_of(kv: &kv::MemoryStore) -> Arc<kv::MemoryStore> {
    let (snapshot, copy) = (kv.snapshot().unwrap(), kv::MemoryStore::new());
    for space in snapshot.spaces() {
        let mut batch = WriteBatch::new();
        for record in snapshot.scan(space, &KeyRange::all(), Direction::Ascending).unwrap() {
            let (key, value) = record.unwrap();
            batch.put(space, key, value);
        }
        copy.commit(&batch).unwrap();
    }
    Arc::new(copy)
}
