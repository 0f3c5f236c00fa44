//! The application object: it holds the store, the registry and all that the doors share.
//!
//! The files of `operations` add what callers may do.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use kv::KeyValueStore;
use model::limits::{IngestLimits, Portion};
use model::{MemoryPressure, PanicEndsProcess};
use parking_lot::Mutex;
use store::{DefinitionLimits, ProgressWatcher, Store, StoreStatus};
use tokio::sync::watch;

use crate::Error;
use crate::alarms::{self, AlarmStore, Inbox, RuleBook, RuleSeries, RuleThread};
use crate::annotations::Usages;
use crate::attributes::{Feed, Pushes, Writer};
use crate::broker::{self, Broker, BrokerError};
use crate::claims::{self, CLAIMS};
use crate::clock::{self, ReceiptClock};
use crate::device_messages::Outboxes;
use crate::device_state::{DeviceStates, StateThread};
use crate::fan_out::FanOut;
use crate::gateways::Creations;
use crate::kv_progress::KvProgress;
use crate::live::Live;
use crate::logins::Logins;
use crate::metrics::Metrics;
use crate::new_columns::NewColumns;
use crate::ota::Packages;
use crate::points::SeriesCache;
use crate::provision_rates::ProvisionRates;
use crate::refusals::Refusals;
use crate::registry::Registry;
use crate::rpc::{Calls, StoredCalls};
use crate::taps::limits::TAP_PENDING_BYTES_MAX;
use crate::taps::{Listeners, Tap};
use crate::tenant_loads::TenantLoads;
use crate::tenant_shares::TenantShares;
use crate::ttls::Ttls;

/// The application. All doors share it.
pub struct Hub {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kv: Arc<dyn KeyValueStore>,
    pub(crate) kv_progress: Arc<KvProgress>,
    pub(crate) broker: Broker,
    pub(crate) registry: Arc<Registry>,
    /// Grows with every change that may end sessions.
    session_changes: watch::Sender<u64>,
    pub(crate) deletions: watch::Sender<u64>,
    pub(crate) limits: IngestLimits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: ReceiptClock,
    pub(crate) ttls: Ttls,
    pub(crate) annotation_usages: Mutex<Usages>,
    pub(crate) refusals: Refusals,
    pub(crate) new_columns: NewColumns,
    pub(crate) series_cache: SeriesCache,
    logins: Logins,
    device_logins: Logins,
    pub(crate) provision_rates: ProvisionRates,
    pub(crate) live: Arc<Live>,
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) attribute_writer: Arc<Writer>,
    pub(crate) attribute_feed: Arc<Feed>,
    pub(crate) device_states: Arc<DeviceStates>,
    pub(crate) state_thread: Mutex<Option<StateThread>>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) stored_calls: Arc<StoredCalls>,
    pub(crate) creations: Creations,
    pub(crate) packages: Packages,
    pub(crate) tenant_loads: TenantLoads,
    pub(crate) tenant_shares: Arc<TenantShares>,
    pub(crate) alarms: Arc<AlarmStore>,
    pub(crate) rule_book: Arc<RuleBook>,
    pub(crate) alarm_inbox: Arc<Inbox>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) listeners: Listeners,
    rule_thread: Mutex<Option<RuleThread>>,
    pub(crate) fan_out: Arc<FanOut>,
    fan_out_thread: Mutex<Option<JoinHandle<()>>>,
    pub(crate) sql: OnceLock<query::Engine>,
    memory_pressure: Arc<MemoryPressure>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts the application on an open store, key-value engine and registry.
    ///
    /// # Errors
    /// The engine has records that cannot be read.
    pub fn start(
        store: Arc<dyn Store>,
        kv: Arc<dyn KeyValueStore>,
        registry: Registry,
        limits: IngestLimits,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, BrokerError> {
        Self::start_on(Portion::ALL, store, kv, registry, limits, metrics)
    }

    /// Like [`start`](Self::start), with bounds that fit the memory of this machine.
    pub fn start_on(
        memory: Portion,
        store: Arc<dyn Store>,
        kv: Arc<dyn KeyValueStore>,
        registry: Registry,
        limits: IngestLimits,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, BrokerError> {
        let now_ms = clock::system_now().micros() / 1_000;
        let registry = Arc::new(registry);
        let tenant_shares = Arc::new(TenantShares::on(memory, &registry, limits.series_max));
        store.limit_definitions(Arc::clone(&tenant_shares) as Arc<dyn DefinitionLimits>);
        let shares = Arc::clone(&tenant_shares) as Arc<dyn broker::TenantShares>;
        let broker = Broker::open(Arc::clone(&kv), Arc::clone(&metrics.broker), memory, shares, now_ms)?;
        let live = Arc::new(Live::on(memory, Arc::clone(&metrics)));
        let fan_out = Arc::new(FanOut::new(Arc::clone(&live)));
        store.watch(Arc::clone(&fan_out) as Arc<dyn ProgressWatcher>);
        let kv_progress = Arc::new(KvProgress::default());
        kv.watch(Arc::clone(&kv_progress) as Arc<dyn kv::ProgressWatcher>);
        let thread = {
            let (fan_out, store) = (Arc::clone(&fan_out), Arc::clone(&store));
            std::thread::Builder::new()
                .name("live".into())
                .spawn(move || {
                    let _guard = PanicEndsProcess::begin();
                    fan_out.run(&*store);
                })
                .expect("BUG: a thread name without zero bytes and enough memory at start-up")
        };
        let stored_calls = Arc::new(StoredCalls::new(Arc::clone(&kv)));
        let outboxes = Arc::new(Outboxes::on(memory, Arc::clone(&metrics)));
        let pushes = Arc::new(Pushes::new(Arc::clone(&outboxes)));
        kv.watch(Arc::clone(&pushes) as Arc<dyn kv::ProgressWatcher>);
        let attribute_feed = Arc::new(Feed::default());
        kv.watch(Arc::clone(&attribute_feed) as Arc<dyn kv::ProgressWatcher>);
        let attribute_writer = Writer::new(Arc::clone(&kv), pushes, Arc::clone(&attribute_feed));
        // The last receipt time matters only if the system clock was set back. The server starts without it.
        let clock = ReceiptClock::after(registry.last_receipt().ok().flatten());
        let session_changes = watch::Sender::new(0);
        let changed = session_changes.clone();
        registry.on_session_change(move || changed.send_modify(|count| *count += 1));
        let alarms = Arc::new(AlarmStore::open(Arc::clone(&kv), Arc::clone(&metrics))?);
        let tap = Arc::new(Tap::new(memory.of(TAP_PENDING_BYTES_MAX), metrics.alarms.queued_bytes.clone()));
        let (rule_book, alarm_inbox) = (Arc::new(alarms::all_rules(&registry)), Arc::<Inbox>::default());
        let listeners = Listeners::default();
        listeners.add_tap(&*store, &tap);
        listeners.add_observer(Arc::new(RuleSeries { book: Arc::clone(&rule_book), tap: Arc::clone(&tap) }));
        let rule_thread = RuleThread::start(alarms::Shared {
            kv: Arc::clone(&kv),
            store: Arc::clone(&store),
            registry: Arc::clone(&registry),
            alarms: Arc::clone(&alarms),
            tap: Arc::clone(&tap),
            inbox: Arc::clone(&alarm_inbox),
            book: Arc::clone(&rule_book),
            metrics: Arc::clone(&metrics),
            now: clock::system_now,
        });
        let packages = Packages::open(Arc::clone(&kv))?;
        kv.expire(CLAIMS, Arc::new(claims::has_expired))?;
        let creations = Creations::start(Arc::clone(&registry), Arc::clone(&metrics));
        Ok(Arc::new(Self {
            store,
            kv,
            kv_progress,
            broker,
            registry,
            session_changes,
            deletions: watch::Sender::new(0),
            new_columns: NewColumns::new(&limits),
            series_cache: SeriesCache::new(random_seed()),
            limits,
            calls: Arc::new(Calls::on(
                memory,
                Arc::clone(&outboxes),
                Arc::clone(&stored_calls),
                Arc::clone(&metrics),
            )),
            stored_calls,
            creations,
            packages,
            tenant_loads: TenantLoads::default(),
            tenant_shares,
            alarms,
            rule_book,
            alarm_inbox,
            tap,
            listeners,
            rule_thread: Mutex::new(Some(rule_thread)),
            outboxes,
            attribute_writer: Arc::new(attribute_writer),
            attribute_feed,
            device_states: Arc::new(DeviceStates::new()),
            state_thread: Mutex::default(),
            metrics,
            clock,
            ttls: Ttls::default(),
            annotation_usages: Mutex::default(),
            refusals: Refusals::new(clock::system_now()),
            logins: Logins::of_users(),
            device_logins: Logins::of_devices(),
            provision_rates: ProvisionRates::default(),
            live,
            fan_out,
            fan_out_thread: Mutex::new(Some(thread)),
            sql: OnceLock::new(),
            memory_pressure: Arc::default(),
        }))
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The memory pressure of the process. Who watches the memory reports it here, and large work asks here before it begins.
    pub fn memory_pressure(&self) -> &Arc<MemoryPressure> {
        &self.memory_pressure
    }

    /// Gives memory back that the store can do without.
    pub fn relieve_memory(&self) {
        self.store.relieve_memory();
    }

    /// The refused messages of each device.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The registry of tenants, users and devices.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Signals that sessions may have ended. A door with an open session then checks it again.
    pub fn session_changes(&self) -> watch::Receiver<u64> {
        self.session_changes.subscribe()
    }

    /// The broker of messages between clients.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Ends sessions of the broker that have expired, or whose device is gone.
    pub fn sweep_broker(&self) {
        let now_ms = clock::system_now().micros() / 1_000;
        let device_exists = |device| self.registry.device_by_id(device).is_some();
        let tenant_exists = |tenant| self.registry.tenant_name(tenant).is_some();
        self.broker.sweep(now_ms, &device_exists, &tenant_exists);
    }

    /// Publishes the counters of the broker under `$SYS`. `uptime` is that of the door.
    pub fn publish_system(&self, uptime: std::time::Duration) {
        let sockets = self.metrics.door(crate::metrics::Door::Mqtt).connections_opened.get();
        self.broker.publish_system(sockets, uptime);
    }

    /// Limits the rate of login attempts of users.
    pub fn logins(&self) -> &Logins {
        &self.logins
    }

    /// Limits the rate of login attempts of devices with passwords, and of their requests for credentials.
    pub fn device_logins(&self) -> &Logins {
        &self.device_logins
    }

    /// The bounds on payloads.
    pub fn limits(&self) -> &IngestLimits {
        &self.limits
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The sizes and health of the store.
    pub fn status(&self) -> StoreStatus {
        self.store.status()
    }

    /// The sizes and health of the key-value engine.
    pub fn keys_status(&self) -> kv::KvStatus {
        self.kv.status()
    }

    /// The metrics as text for Prometheus.
    pub fn metrics_text(&self) -> String {
        self.broker.measure();
        self.metrics.set_tenants(&self.tenant_reports());
        self.metrics.set_memory(&self.memory_pressure, query::allocated_bytes());
        self.metrics.render(&self.status(), &self.kv.status(), self.sql_status())
    }

    /// Makes all rows and keys durable, and stops. The doors must have stopped before, and what appends rows of its own.
    pub fn close(&self) -> Result<(), Error> {
        self.stop_device_states();
        drop(self.rule_thread.lock().take());
        let closed = self.kv.close().map_err(Error::from).and(self.store.close().map_err(Error::from));
        if let Some(last) = self.clock.last() {
            // A failure only loses the last receipt time; see `start`.
            drop(self.registry.keep_last_receipt(last));
        }
        self.fan_out.stop();
        if let Some(thread) = self.fan_out_thread.lock().take() {
            // The thread cannot have panicked: a panic ends the process.
            drop(thread.join());
        }
        closed
    }
}

/// A seed that nobody else knows.
fn random_seed() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(0_u64)
}

#[cfg(test)]
mod tests {
    use store::MemoryStore;

    use super::*;

    #[test]
    fn the_hub_keeps_the_last_time_for_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.sqlite");
        let ahead = clock::system_now().saturating_add_micros(30_000_000);
        let (registry, _) = Registry::open(&path).unwrap();
        registry.keep_last_receipt(ahead).unwrap();
        let start = |registry| {
            let (store, metrics) = (Arc::new(MemoryStore::new()), Arc::new(Metrics::new()));
            let kv = Arc::new(kv::MemoryStore::new());
            Hub::start(store, kv, registry, IngestLimits::default(), metrics).unwrap()
        };
        let hub = start(registry);
        assert_eq!(hub.receipt_time(), ahead.saturating_add_micros(1));
        hub.close().unwrap();
        drop(hub);
        let hub = start(Registry::open(&path).unwrap().0);
        assert_eq!(hub.receipt_time(), ahead.saturating_add_micros(2));
        hub.close().unwrap();
    }
}
