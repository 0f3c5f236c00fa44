//! Metrics of the platform for Prometheus.
//!
//! The hot path touches only atomics. [`Metrics::new`] resolves names and labels once.

mod alarms;
mod device_messages;
mod histogram;
mod memory;
mod rpc;
mod tenants;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kv::KvStatus;
use model::MemoryPressure;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use query::EngineStatus;
use store::{ByClass, Durability, StoreStatus};

use crate::broker::BrokerMetrics;

pub use alarms::AlarmMetrics;
pub use device_messages::DeviceMessageMetrics;
pub use histogram::LatencyHistogram;
use memory::MemoryGauges;
pub use rpc::RpcMetrics;
use tenants::TenantMetrics;
pub(crate) use tenants::{TenantReport, TenantUsage};

/// A door: a listener with a protocol. Also the label of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// MQTT 3.1.1 and 5.
    Mqtt,
    /// The HTTP device API.
    Http,
    /// The PostgreSQL wire protocol.
    Postgres,
    /// OpenTSDB's port: HTTP and telnet.
    OpenTsdb,
    /// HiTSDB's port.
    HiTsdb,
    /// InfluxDB's port.
    Influx,
    /// GSN's port.
    Gsn,
    /// Connectors of virtual sensors, which fetch what comes from outside.
    Connector,
}

impl Door {
    /// All doors, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Mqtt,
        Self::Http,
        Self::Postgres,
        Self::OpenTsdb,
        Self::HiTsdb,
        Self::Influx,
        Self::Gsn,
        Self::Connector,
    ];

    /// The text of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqtt => "mqtt",
            Self::Http => "http",
            Self::Postgres => "postgres",
            Self::OpenTsdb => "opentsdb",
            Self::HiTsdb => "hitsdb",
            Self::Influx => "influx",
            Self::Gsn => "gsn",
            Self::Connector => "connector",
        }
    }
}

/// Counters of one door.
#[derive(Debug, Clone)]
pub struct DoorMetrics {
    /// Received messages, accepted or refused.
    pub messages: Counter,
    /// Bytes of their payloads.
    pub bytes: Counter,
    /// Open connections.
    pub connections: Gauge,
    /// Connections ever opened.
    pub connections_opened: Counter,
    /// Requests: of HTTP, statements of PostgreSQL, MQTT messages.
    pub requests: Counter,
    /// Latency from the end of reading a message to writing its ack to the socket.
    pub ack_latency: LatencyHistogram,
}

/// All metrics of the process.
pub struct Metrics {
    registry: Mutex<Registry>,
    /// In the order of [`Door::ALL`].
    doors: [DoorMetrics; Door::ALL.len()],
    /// Field values appended.
    pub points: Counter,
    /// Rows appended.
    pub rows: Counter,
    /// Rows appended by durability class.
    rows_by_class: ByClass<Counter>,
    refusals: Family<ReasonLabel, Counter>,
    door_limits: Family<LimitLabel, Gauge>,
    sync_latency: LatencyHistogram,
    synced_bytes: Counter,
    flush: PartsMade,
    compaction: PartsMade,
    compaction_read_bytes: Counter,
    damaged_parts: Counter,
    merge_panics: Counter,
    /// Values delivered to live subscribers.
    pub live_values: Counter,
    /// Values that a slow live subscriber did not get, because newer ones replaced them.
    pub live_coalesced: Counter,
    /// Counters of the broker.
    pub broker: Arc<BrokerMetrics>,
    pub device_messages: DeviceMessageMetrics,
    pub rpc: RpcMetrics,
    /// Alarms and their rules.
    pub alarms: AlarmMetrics,
    /// Devices that gateways have added.
    pub gateway_devices_added: Counter,
    tenants: TenantMetrics,
    store: StoreGauges,
    keys: KeyGauges,
    sql: SqlGauges,
    memory: MemoryGauges,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoorLabel {
    door: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    door: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabel {
    door: &'static str,
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    durability: &'static str,
}

/// Parts that a flush or a merge made.
#[derive(Debug, Clone, Copy)]
pub struct MadeParts {
    pub duration: Duration,
    /// Number of parts.
    pub parts: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// Sums over all flushes, or over all merges.
#[derive(Default)]
struct PartsMade {
    times: Counter,
    parts: Counter,
    rows: Counter,
    bytes: Counter,
    seconds: Counter<f64, AtomicU64>,
}

impl PartsMade {
    fn add(&self, made: &MadeParts) {
        self.times.inc();
        self.parts.inc_by(made.parts);
        self.rows.inc_by(made.rows);
        self.bytes.inc_by(made.bytes);
        self.seconds.inc_by(made.duration.as_secs_f64());
    }

    fn register(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(format!("{name}_runs"), help, self.times.clone());
        let sums = [
            ("parts", "parts made", &self.parts),
            ("rows", "their rows", &self.rows),
            ("bytes", "their bytes", &self.bytes),
        ];
        for (unit, what, counter) in sums {
            registry.register(format!("{name}_{unit}"), format!("{help}: {what}"), counter.clone());
        }
        registry.register(format!("{name}_seconds"), format!("{help}: time spent"), self.seconds.clone());
    }
}

#[derive(Default)]
struct StoreGauges {
    log_pending_bytes: Gauge,
    log_bytes: Gauge,
    memtable_bytes: Gauge,
    series: Gauge,
    parts: Gauge,
    part_bytes: Gauge,
    parts_per_table_max: Gauge,
    parts_overlap_max: Gauge,
    flush_held: Gauge,
    sealed: Gauge,
    busy: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("tacho");
        let doors = register_doors(&mut registry);
        let rows_by_class = register_classes(&mut registry);
        let refusals = Family::default();
        registry.register("refusals", "Requests refused, by door and reason", refusals.clone());
        let door_limits = Family::default();
        let help = "Limits of the doors, by the names of their settings";
        registry.register("door_limit", help, door_limits.clone());
        let metrics = Self {
            doors,
            points: Counter::default(),
            rows: Counter::default(),
            rows_by_class,
            refusals,
            door_limits,
            sync_latency: LatencyHistogram::default(),
            synced_bytes: Counter::default(),
            flush: PartsMade::default(),
            compaction: PartsMade::default(),
            compaction_read_bytes: Counter::default(),
            damaged_parts: Counter::default(),
            merge_panics: Counter::default(),
            live_values: Counter::default(),
            live_coalesced: Counter::default(),
            broker: Arc::default(),
            device_messages: DeviceMessageMetrics::default(),
            rpc: RpcMetrics::default(),
            alarms: AlarmMetrics::default(),
            gateway_devices_added: Counter::default(),
            tenants: TenantMetrics::default(),
            store: StoreGauges::default(),
            keys: KeyGauges::default(),
            sql: SqlGauges::default(),
            memory: MemoryGauges::default(),
            registry: Mutex::new(Registry::default()),
        };
        metrics.register_store(&mut registry);
        metrics.sql.register(&mut registry);
        metrics.memory.register(&mut registry);
        metrics.broker.register(&mut registry);
        metrics.keys.register(&mut registry);
        metrics.device_messages.register(&mut registry);
        metrics.rpc.register(&mut registry);
        metrics.alarms.register(&mut registry);
        metrics.tenants.register(&mut registry);
        let help = "Devices that gateways have added to the registry";
        registry.register("gateway_devices_added", help, metrics.gateway_devices_added.clone());
        *metrics.registry.lock() = registry;
        metrics
    }

    /// Adds the metrics of something that the hub does not know. `register` gives them their names.
    pub fn add(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock());
    }

    /// Shows what the tenants do.
    pub(crate) fn set_tenants(&self, reports: &[TenantReport]) {
        self.tenants.set(reports);
    }

    /// The counters of one door.
    pub fn door(&self, door: Door) -> &DoorMetrics {
        &self.doors[door as usize]
    }

    /// Counts a refusal under a short, stable reason.
    pub fn refused(&self, door: Door, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabel { door: door.name(), reason }).inc();
    }

    /// Counts refusals under a short, stable reason.
    pub fn refused_many(&self, door: Door, reason: &'static str, count: u64) {
        if count > 0 {
            self.refusals.get_or_create(&ReasonLabel { door: door.name(), reason }).inc_by(count);
        }
    }

    /// Shows a limit of a door.
    pub fn set_door_limit(&self, door: Door, limit: &'static str, value: usize) {
        let gauge = self.door_limits.get_or_create(&LimitLabel { door: door.name(), limit });
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Counts appended rows.
    pub fn appended(&self, durability: Durability, rows: u64, points: u64) {
        self.rows.inc_by(rows);
        self.points.inc_by(points);
        self.rows_by_class[durability].inc_by(rows);
    }

    /// Records one sync of the log.
    pub fn synced(&self, duration: Duration, bytes: u64) {
        self.sync_latency.observe(duration.as_secs_f64());
        self.synced_bytes.inc_by(bytes);
    }

    /// Counts one flush of memory to parts.
    pub fn flushed(&self, made: &MadeParts) {
        self.flush.add(made);
    }

    /// Counts one merge of parts whose inputs had `bytes_read` bytes.
    pub fn compacted(&self, made: &MadeParts, bytes_read: u64) {
        self.compaction.add(made);
        self.compaction_read_bytes.inc_by(bytes_read);
    }

    /// Counts a part that could not be read when it was to be merged.
    pub fn damaged_part(&self) {
        self.damaged_parts.inc();
    }

    /// Counts a merge that ended in a panic; its part is left out of merges until the next start.
    pub fn merge_panicked(&self) {
        self.merge_panics.inc();
    }

    /// Shows the use of memory.
    pub(crate) fn set_memory(&self, pressure: &MemoryPressure, allocated: u64) {
        self.memory.set(pressure, allocated);
    }

    /// The metrics as text for Prometheus, with the present sizes of the store and of the SQL engine.
    pub fn render(&self, status: &StoreStatus, keys: &KvStatus, sql: Option<EngineStatus>) -> String {
        self.store.set(status);
        self.keys.set(keys);
        if let Some(sql) = sql {
            self.sql.set(&sql);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry.lock()).expect("BUG: writing into a string cannot fail");
        text
    }

    fn register_store(&self, registry: &mut Registry) {
        registry.register("points", "Field values appended", self.points.clone());
        registry.register("rows", "Rows appended", self.rows.clone());
        let sync = "Time of one log sync (fdatasync)";
        registry.register("sync_latency_seconds", sync, self.sync_latency.clone());
        registry.register("synced_bytes", "Log bytes covered by syncs", self.synced_bytes.clone());
        self.flush.register(registry, "flush", "Flushes of memory to parts");
        self.compaction.register(registry, "compaction", "Merges of parts");
        let read = "Bytes of the parts that merges replaced";
        registry.register("compaction_read_bytes", read, self.compaction_read_bytes.clone());
        let damaged = "Parts that could not be read when they were to be merged";
        registry.register("damaged_parts", damaged, self.damaged_parts.clone());
        let panics = "Merges that ended in a panic, which is a fault of this program; all rows are served";
        registry.register("merge_panics", panics, self.merge_panics.clone());
        registry.register("live_values", "Values handed to live subscribers", self.live_values.clone());
        let coalesced = "Values a slow live subscriber missed because a newer one replaced them";
        registry.register("live_coalesced", coalesced, self.live_coalesced.clone());
        let gauges = &self.store;
        for (name, help, gauge) in [
            ("log_pending_bytes", "Log bytes not yet durable", &gauges.log_pending_bytes),
            ("log_bytes", "Log bytes that a recovery would read", &gauges.log_bytes),
            ("memtable_bytes", "Bytes of rows in memory that no part holds yet", &gauges.memtable_bytes),
            ("series", "Series of the store", &gauges.series),
            ("parts", "Immutable parts", &gauges.parts),
            ("part_bytes", "Bytes of the parts on disk", &gauges.part_bytes),
            ("parts_per_table_max", "Most parts of one table", &gauges.parts_per_table_max),
            ("parts_overlap_max", "Most parts of one table and time", &gauges.parts_overlap_max),
            ("flush_held", "1 when flushes wait for merges", &gauges.flush_held),
            ("store_sealed", "1 when writes are refused since a write failed", &gauges.sealed),
            ("store_busy", "1 when writes must wait", &gauges.busy),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}

impl StoreGauges {
    fn set(&self, status: &StoreStatus) {
        let put = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.log_pending_bytes, status.log_pending_bytes);
        put(&self.log_bytes, status.log_bytes);
        put(&self.memtable_bytes, status.memtable_bytes);
        put(&self.series, status.series);
        put(&self.parts, status.parts);
        put(&self.part_bytes, status.part_bytes);
        put(&self.parts_per_table_max, status.parts_per_table_max);
        put(&self.parts_overlap_max, status.parts_overlap_max);
        put(&self.flush_held, u64::from(status.flush_held.is_some()));
        put(&self.sealed, u64::from(status.sealed.is_some()));
        put(&self.busy, u64::from(status.busy.is_some()));
    }
}

/// The present state of the key-value engine.
#[derive(Debug, Default)]
struct KeyGauges {
    disk_bytes: Gauge,
    memory_bytes: Gauge,
    undurable_bytes: Gauge,
    commits: Gauge,
    syncs: Gauge,
    busy: Gauge,
    sealed: Gauge,
}

impl KeyGauges {
    fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("kv_disk_bytes", "Bytes of the key-value engine on disk", &self.disk_bytes),
            (
                "kv_memory_bytes",
                "Bytes of the engine's cache, and of records that are not in files yet",
                &self.memory_bytes,
            ),
            ("kv_undurable_bytes", "Bytes of batches that are not durable yet", &self.undurable_bytes),
            ("kv_commits", "Batches that the engine took since the start", &self.commits),
            ("kv_syncs", "Syncs of the engine since the start", &self.syncs),
            ("kv_busy", "1 when writes to the engine have to wait", &self.busy),
            ("kv_sealed", "1 when the engine refuses writes since a write failed", &self.sealed),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }

    fn set(&self, status: &KvStatus) {
        let put = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.disk_bytes, status.disk_bytes);
        put(&self.memory_bytes, status.memory_bytes);
        put(&self.undurable_bytes, status.undurable_bytes);
        put(&self.commits, status.commits);
        put(&self.syncs, status.syncs);
        put(&self.busy, u64::from(status.busy.is_some()));
        put(&self.sealed, u64::from(status.sealed.is_some()));
    }
}

/// The present state of the SQL engine.
#[derive(Debug, Default)]
struct SqlGauges {
    running: Gauge,
    waiting: Gauge,
    memory_bytes: Gauge,
    allocated_bytes: Gauge,
    unended: Gauge,
}

impl SqlGauges {
    fn register(&self, registry: &mut Registry) {
        let unended = "SQL statements that compute on for more than a second after they were ended";
        for (name, help, gauge) in [
            ("sql_running", "SQL statements that run", &self.running),
            ("sql_waiting", "SQL statements that wait for their turn", &self.waiting),
            ("sql_memory_bytes", "Bytes that operators of SQL statements account for", &self.memory_bytes),
            ("sql_allocated_bytes", "Bytes that SQL statements have allocated", &self.allocated_bytes),
            ("sql_unended", unended, &self.unended),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }

    fn set(&self, status: &EngineStatus) {
        let put = |gauge: &Gauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.running, status.running);
        put(&self.waiting, status.waiting);
        put(&self.memory_bytes, status.memory_bytes);
        put(&self.allocated_bytes, status.allocated_bytes);
        put(&self.unended, status.unended);
    }
}

fn register_doors(registry: &mut Registry) -> [DoorMetrics; Door::ALL.len()] {
    let messages = Family::<DoorLabel, Counter>::default();
    let bytes = Family::<DoorLabel, Counter>::default();
    let connections = Family::<DoorLabel, Gauge>::default();
    let opened = Family::<DoorLabel, Counter>::default();
    let requests = Family::<DoorLabel, Counter>::default();
    let latency = Family::<DoorLabel, LatencyHistogram>::default();
    let door = |door: Door| {
        let label = DoorLabel { door: door.name() };
        DoorMetrics {
            messages: messages.get_or_create_owned(&label),
            bytes: bytes.get_or_create_owned(&label),
            connections: connections.get_or_create_owned(&label),
            connections_opened: opened.get_or_create_owned(&label),
            requests: requests.get_or_create_owned(&label),
            ack_latency: latency.get_or_create_owned(&label),
        }
    };
    let doors = Door::ALL.map(door);
    registry.register("messages", "Messages taken", messages);
    registry.register("ingest_bytes", "Bytes of message payloads", bytes);
    registry.register("connections", "Open connections", connections);
    registry.register("connections_opened", "Connections ever opened", opened);
    registry.register("requests", "HTTP requests, PostgreSQL statements, MQTT messages", requests);
    let help = "From the end of reading a message to its ack being handed to the socket";
    registry.register("ack_latency_seconds", help, latency);
    doors
}

fn register_classes(registry: &mut Registry) -> ByClass<Counter> {
    let rows = Family::<ClassLabel, Counter>::default();
    let counters =
        ByClass::from_fn(|class| rows.get_or_create_owned(&ClassLabel { durability: class.name() }));
    registry.register("rows_by_durability", "Rows appended, by what their ack promises", rows);
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_all_counters() {
        let metrics = Metrics::new();
        metrics.door(Door::Mqtt).messages.inc_by(3);
        metrics.door(Door::Mqtt).ack_latency.observe(0.001);
        metrics.refused(Door::Http, "token");
        metrics.appended(Durability::Fsync, 2, 7);
        metrics.synced(Duration::from_micros(90), 4096);
        let status =
            StoreStatus { memtable_bytes: 42, sealed: Some("disk".into()), ..StoreStatus::default() };
        let text = metrics.render(&status, &KvStatus::default(), None);
        for line in [
            r#"tacho_messages_total{door="mqtt"} 3"#,
            r#"tacho_messages_total{door="http"} 0"#,
            r#"tacho_refusals_total{door="http",reason="token"} 1"#,
            r#"tacho_rows_by_durability_total{durability="fsync"} 2"#,
            "tacho_points_total 7",
            "tacho_memtable_bytes 42",
            "tacho_store_sealed 1",
            "tacho_sync_latency_seconds_count 1",
            r#"tacho_ack_latency_seconds_count{door="mqtt"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
