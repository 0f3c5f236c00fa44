//! The configuration as it is written. `config/tacho.toml` explains every key; a test compares its values with these defaults.

use std::path::PathBuf;

use gateway::mqtt::OWN_TOPICS;
use gateway::postgres::limits as postgres_limits;
use model::calendar::Moment;
use model::limits::{self, IngestLimits, QueryLimits};
use serde::{Deserialize, Serialize};

/// All settings, as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawConfig {
    /// The data directory.
    pub data: PathBuf,
    /// The MQTT door.
    pub mqtt: RawMqtt,
    /// The HTTP door.
    pub http: RawHttp,
    /// The PostgreSQL door.
    pub postgres: RawPostgres,
    /// The ports of time-series databases.
    pub time_series: RawTimeSeries,
    /// Certificate and key of all doors.
    pub tls: RawTls,
    /// SQL queries of all doors.
    pub query: RawQuery,
    /// The embedded store.
    pub store: RawStore,
    /// Limits on payloads.
    pub ingest: RawIngest,
    /// The state of devices.
    pub devices: RawDevices,
    /// Virtual sensors.
    pub sensors: RawSensors,
    /// Log lines.
    pub log: RawLog,
}

/// `[mqtt]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawMqtt {
    /// Address and port.
    pub listen: String,
    /// Address and port for connections with TLS; empty means none.
    pub tls_listen: String,
    /// Threads; 0 means one per two cores.
    pub workers: usize,
    /// Largest packet in bytes.
    pub packet_bytes_max: usize,
    /// Longest time from the TCP connect to CONNECT.
    pub connect_timeout_s: u32,
    /// Longest keep-alive; 0 means no limit.
    pub keep_alive_max_s: u16,
    /// Seconds between two reports under `$SYS`; 0 means none.
    pub sys_interval_s: u16,
    /// Patterns of topics that devices may publish to.
    pub publish_topics: Vec<String>,
    /// Patterns of topic filters that devices may subscribe to.
    pub subscribe_topics: Vec<String>,
    /// Messages of one MQTT 5 client that may wait for their ack.
    pub receive_maximum: u16,
    /// Open connections; 0 means as many as the open-file limit allows.
    pub connections_max: usize,
    /// Open connections of one address; 0 means as many as of all.
    pub connections_per_address_max: usize,
    /// New connections in a second; 0 means no limit.
    pub connections_per_second_max: u32,
    /// Messages in a second; 0 means no limit.
    pub requests_per_second_max: u32,
    /// Load balancers that send a header of the PROXY protocol: addresses or networks.
    pub proxy_protocol: Vec<String>,
}

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawHttp {
    /// Address and port.
    pub listen: String,
    /// Address and port for connections with TLS; empty means none.
    pub tls_listen: String,
    /// Largest request body in bytes.
    pub body_bytes_max: usize,
    /// Open connections; 0 means a quarter of the open-file limit, at most 1024.
    pub connections_max: usize,
    /// Open connections of one address; 0 means three quarters of all.
    pub connections_per_address_max: usize,
    /// New connections in a second; 0 means no limit.
    pub connections_per_second_max: u32,
    /// Requests in a second; 0 means no limit.
    pub requests_per_second_max: u32,
    /// Load balancers that send a header of the PROXY protocol: addresses or networks.
    pub proxy_protocol: Vec<String>,
    /// Whether reading needs no login.
    pub public_read: bool,
}

/// `[postgres]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawPostgres {
    /// Address and port; empty means that the door is closed.
    pub listen: String,
    /// Open connections.
    pub connections_max: usize,
    /// Open connections of one address; 0 means three quarters of all.
    pub connections_per_address_max: usize,
    /// New connections in a second; 0 means no limit.
    pub connections_per_second_max: u32,
    /// Statements in a second; 0 means no limit.
    pub requests_per_second_max: u32,
    /// Load balancers that send a header of the PROXY protocol: addresses or networks.
    pub proxy_protocol: Vec<String>,
    /// Seconds after which a silent connection is closed; 0 means never.
    pub idle_timeout_s: u32,
    /// Whether a login needs TLS.
    pub tls_required: bool,
}

/// `[time_series]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawTimeSeries {
    /// Address and port of OpenTSDB's door; empty means that it is closed.
    pub opentsdb_listen: String,
    /// Address and port of HiTSDB's door; empty means that it is closed.
    pub hitsdb_listen: String,
    /// Address and port of InfluxDB's door; empty means that it is closed.
    pub influx_listen: String,
    /// Address and port of GSN's door; empty means that it is closed.
    pub gsn_listen: String,
    /// Hosts to which GSN's push may send elements.
    pub gsn_push_targets: Vec<String>,
    /// Whether callers without credentials may read and write.
    pub open: bool,
    /// The role of callers without credentials; empty means operator.
    pub open_role: String,
}

/// `[tls]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawTls {
    /// File with the certificate and the intermediate ones; empty means no TLS.
    pub certificate: String,
    /// File with its key.
    pub key: String,
    /// Whether clients have certificates: `off`, `optional` or `required`; empty means required with `client_ca`, otherwise off.
    pub client_certificates: String,
    /// File with the authorities of client certificates; empty if any certificate may come.
    pub client_ca: String,
}

/// `[query]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawQuery {
    /// Longest time of one query.
    pub timeout_s: u32,
    /// Memory of one query in bytes.
    pub memory_bytes_max: usize,
    /// Memory of all queries together in bytes.
    pub memory_bytes_total_max: usize,
    /// Queries that run at the same time.
    pub concurrent_max: usize,
    /// Queries that wait in the queue.
    pub waiting_max: usize,
    /// Threads; 0 means one per core.
    pub threads: usize,
}

/// `[store]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawStore {
    /// Shortest time between two syncs of the log.
    pub commit_interval_us: u64,
    /// Memtable bytes above which writers wait.
    pub memtable_bytes_max: usize,
    /// Memtable bytes at which a flush to parts begins.
    pub memtable_flush_bytes: usize,
    /// Size of a log segment file.
    pub log_segment_bytes: u64,
    /// Series whose latest values stay in memory.
    pub latest_series_max: usize,
    /// Bytes of the latest values in memory.
    pub latest_bytes_max: usize,
    /// Bytes of decoded columns that stay in memory for the next read.
    pub read_cache_bytes_max: usize,
    /// Level of zstd for parts.
    pub zstd_level: usize,
    /// Time to live of rows in tables without their own; "0" keeps them forever.
    pub ttl_default: String,
}

/// `[ingest]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawIngest {
    /// Most keys in one row.
    pub keys_per_row_max: usize,
    /// Most rows in one message.
    pub rows_per_message_max: usize,
    /// Longest string or JSON value in bytes.
    pub text_value_bytes_max: usize,
    /// Deepest nesting of a JSON value.
    pub json_depth_max: usize,
    /// Most columns that one device may add.
    pub columns_per_device_max: usize,
    /// Most columns that one device may add in a minute.
    pub new_columns_per_minute_max: usize,
    /// Most series of all tables; 0 for what the memory allows.
    pub series_max: usize,
    /// How far a timestamp may lie in the future.
    pub future_max_s: i64,
    /// Oldest accepted timestamp, RFC 3339.
    pub oldest: String,
}

/// `[devices]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawDevices {
    /// Seconds of silence after which a device is inactive.
    pub inactivity_timeout_s: u32,
}

/// `[sensors]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawSensors {
    /// The directory of the descriptors; empty means `sensors` in the data directory.
    pub directory: String,
    /// Servers that sensors may connect to, besides those that they may anyway.
    pub allowed_targets: Vec<String>,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawLog {
    /// error, warn, info, debug or trace, or a filter such as `info,gateway=debug`.
    pub level: String,
    /// text or json.
    pub format: String,
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            data: "tacho-data".into(),
            mqtt: RawMqtt::default(),
            http: RawHttp::default(),
            postgres: RawPostgres::default(),
            time_series: RawTimeSeries::default(),
            tls: RawTls::default(),
            query: RawQuery::default(),
            store: RawStore::default(),
            ingest: RawIngest::default(),
            devices: RawDevices::default(),
            sensors: RawSensors::default(),
            log: RawLog::default(),
        }
    }
}

impl Default for RawMqtt {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:1883".into(),
            tls_listen: String::new(),
            workers: 0,
            packet_bytes_max: 1024 * 1024,
            connect_timeout_s: 10,
            keep_alive_max_s: 600,
            sys_interval_s: 10,
            publish_topics: vec![OWN_TOPICS.into()],
            subscribe_topics: vec![OWN_TOPICS.into()],
            receive_maximum: 1024,
            connections_max: 0,
            connections_per_address_max: 0,
            connections_per_second_max: 0,
            requests_per_second_max: 0,
            proxy_protocol: Vec::new(),
        }
    }
}

impl Default for RawHttp {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            tls_listen: String::new(),
            body_bytes_max: 4 * 1024 * 1024,
            connections_max: 0,
            connections_per_address_max: 0,
            connections_per_second_max: 0,
            requests_per_second_max: 0,
            proxy_protocol: Vec::new(),
            public_read: false,
        }
    }
}

impl Default for RawPostgres {
    fn default() -> Self {
        Self {
            listen: String::new(),
            connections_max: postgres_limits::CONNECTIONS_MAX,
            connections_per_address_max: 0,
            connections_per_second_max: 0,
            requests_per_second_max: 0,
            proxy_protocol: Vec::new(),
            idle_timeout_s: 3_600,
            tls_required: false,
        }
    }
}

impl Default for RawQuery {
    fn default() -> Self {
        let limits = QueryLimits::default();
        Self {
            timeout_s: u32::try_from(limits.timeout.as_secs()).unwrap_or(u32::MAX),
            memory_bytes_max: limits.memory_bytes_max,
            memory_bytes_total_max: limits.memory_bytes_total_max,
            concurrent_max: limits.running_max,
            waiting_max: limits.waiting_max,
            threads: limits.threads,
        }
    }
}

impl Default for RawStore {
    fn default() -> Self {
        Self {
            commit_interval_us: 1_000,
            memtable_bytes_max: limits::MEMTABLE_BYTES_MAX,
            memtable_flush_bytes: limits::MEMTABLE_FLUSH_BYTES,
            log_segment_bytes: limits::LOG_SEGMENT_BYTES,
            latest_series_max: limits::LATEST_SERIES_MAX,
            latest_bytes_max: limits::LATEST_BYTES_MAX,
            read_cache_bytes_max: limits::ARRAY_CACHE_BYTES_MAX,
            zstd_level: limits::PART_ZSTD_LEVEL as usize,
            ttl_default: "0".into(),
        }
    }
}

impl Default for RawIngest {
    fn default() -> Self {
        let limits = IngestLimits::default();
        Self {
            keys_per_row_max: limits.keys_per_row_max,
            rows_per_message_max: limits.rows_per_message_max,
            text_value_bytes_max: limits.text_value_bytes_max,
            json_depth_max: limits.json_depth_max,
            columns_per_device_max: limits.columns_per_device_max,
            new_columns_per_minute_max: limits.new_columns_per_minute_max,
            series_max: 0,
            future_max_s: limits.future_max_s,
            oldest: rfc3339(limits.oldest),
        }
    }
}

impl Default for RawDevices {
    fn default() -> Self {
        Self { inactivity_timeout_s: hub::device_state::limits::INACTIVITY_TIMEOUT_DEFAULT_S }
    }
}

impl Default for RawLog {
    fn default() -> Self {
        Self { level: "info".into(), format: "text".into() }
    }
}

/// A timestamp as people write it; the number of microseconds when it lies outside of the calendar.
fn rfc3339(ts: model::Timestamp) -> String {
    let micros = ts.micros();
    Moment::from_micros(micros).map_or_else(|| micros.to_string(), |moment| moment.to_string())
}
