//! Resolves the raw configuration: parses addresses and durations, and checks values against each other.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clients::outgoing::AllowedTargets;
use gateway::http::limits as http_limits;
use gateway::mqtt::limits as mqtt_limits;
use gateway::tls::TlsFiles;
use hub::caller::Role;
use hub::registry::check_pattern;
use model::Timestamp;
use model::calendar::Moment;
use model::limits::{self, IngestLimits, QueryLimits};

use super::ConfigError;
use super::derive::MemoryLimits;
use super::door::{self, DoorConfig};
use super::raw::{
    RawConfig, RawDevices, RawHttp, RawIngest, RawLog, RawMqtt, RawPostgres, RawQuery, RawSensors, RawStore,
    RawTimeSeries,
};
use super::tls;
use crate::limits::{
    HTTP_CONNECTIONS_MAX, INACTIVITY_TIMEOUT_S_MAX, MQTT_WORKERS_MAX, POSTGRES_CONNECTIONS_MAX,
    QUERY_THREADS_MAX, TTL_S_MAX,
};

/// The directory of virtual sensors in the data directory.
pub(crate) const SENSORS_DIRECTORY: &str = "sensors";

/// All settings, resolved.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The data directory.
    pub data: PathBuf,
    /// The MQTT door.
    pub mqtt: MqttConfig,
    /// The HTTP door.
    pub http: HttpConfig,
    /// The PostgreSQL door; `None` if it is closed.
    pub postgres: Option<PostgresConfig>,
    /// The ports of time-series databases.
    pub time_series: TimeSeriesConfig,
    /// Files of certificate and key; `None` means no TLS.
    pub tls: Option<TlsFiles>,
    /// SQL queries of all doors.
    pub query: QueryLimits,
    /// The embedded store.
    pub store: StoreConfig,
    /// Limits on payloads.
    pub ingest: IngestLimits,
    /// Silence after which a device is inactive.
    pub inactivity_timeout: Duration,
    /// The directory of virtual sensors.
    pub sensors: PathBuf,
    /// Servers that virtual sensors may connect to, besides those that they may anyway.
    pub sensor_targets: Arc<AllowedTargets>,
    /// Log lines.
    pub log: LogConfig,
    /// The limits that the memory allows.
    pub memory: MemoryLimits,
}

impl Config {
    /// Opens the PostgreSQL door at an address, with its other settings.
    pub(crate) fn open_postgres(&mut self, listen: SocketAddr) {
        let raw = RawPostgres { listen: listen.to_string(), ..RawPostgres::default() };
        match &mut self.postgres {
            Some(door) => door.listen = listen,
            None => self.postgres = postgres(&raw).expect("BUG: the defaults are valid"),
        }
    }
}

/// `[mqtt]`, checked.
#[derive(Debug, Clone)]
pub(crate) struct MqttConfig {
    pub listen: SocketAddr,
    /// `None` means no connections with TLS.
    pub tls_listen: Option<SocketAddr>,
    pub workers: usize,
    pub packet_bytes_max: usize,
    pub connect_timeout_s: u32,
    pub keep_alive_max_s: u16,
    pub sys_interval_s: u16,
    pub publish_topics: Vec<String>,
    pub subscribe_topics: Vec<String>,
    pub receive_maximum: u16,
    /// Limits and load balancers.
    pub door: DoorConfig,
}

/// `[http]`, checked.
#[derive(Debug, Clone)]
pub(crate) struct HttpConfig {
    pub listen: SocketAddr,
    /// `None` means no connections with TLS.
    pub tls_listen: Option<SocketAddr>,
    pub body_bytes_max: usize,
    /// Limits and load balancers.
    pub door: DoorConfig,
    pub public_read: bool,
}

/// `[postgres]`, checked.
#[derive(Debug, Clone)]
pub(crate) struct PostgresConfig {
    pub listen: SocketAddr,
    /// Limits and load balancers.
    pub door: DoorConfig,
    pub idle_timeout: Option<Duration>,
    pub tls_required: bool,
}

/// `[time_series]`, checked. An address is `None` if its door is closed.
#[derive(Debug, Clone)]
pub(crate) struct TimeSeriesConfig {
    pub opentsdb: Option<SocketAddr>,
    pub hitsdb: Option<SocketAddr>,
    pub influx: Option<SocketAddr>,
    pub gsn: Option<SocketAddr>,
    pub gsn_push_targets: Arc<AllowedTargets>,
    pub open: Option<Role>,
}

/// `[store]`, checked.
#[derive(Debug, Clone)]
pub(crate) struct StoreConfig {
    pub commit_interval_us: u64,
    pub memtable_bytes_max: usize,
    pub memtable_flush_bytes: usize,
    pub log_segment_bytes: u64,
    pub latest_series_max: usize,
    pub latest_bytes_max: usize,
    pub read_cache_bytes_max: usize,
    pub zstd_level: i32,
    /// Bytes of values in a row group of a part.
    pub part_row_group_bytes: usize,
    /// Bytes of each input that a merge decodes at a time.
    pub merge_window_bytes: usize,
    /// Most inputs of one merge.
    pub merge_inputs_max: usize,
    /// Most rows that a read of one series decodes at a time.
    pub read_batch_rows: usize,
    /// Time to live of rows in tables without their own; `None` keeps them forever.
    pub ttl_default: Option<Duration>,
}

/// `[log]`, checked.
#[derive(Debug, Clone)]
pub(crate) struct LogConfig {
    /// A filter of `tracing-subscriber`.
    pub level: String,
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Checks and converts every value.
pub(super) fn resolve(raw: RawConfig, memory: MemoryLimits) -> Result<Config, ConfigError> {
    if raw.data.as_os_str().is_empty() {
        return Err(ConfigError::value("data", "empty", "name a directory, such as ./data"));
    }
    let tls = tls::files(&raw.tls)?;
    let uses_tls = [
        ("mqtt.tls_listen", !raw.mqtt.tls_listen.is_empty()),
        ("http.tls_listen", !raw.http.tls_listen.is_empty()),
        ("postgres.tls_required", raw.postgres.tls_required),
    ];
    tls::check_needs(tls.as_ref(), uses_tls)?;
    let sensor_targets = targets("sensors.allowed_targets", &raw.sensors.allowed_targets)?;
    let sensors = sensors(&raw.data, &raw.sensors);
    Ok(Config {
        data: raw.data,
        mqtt: mqtt(&raw.mqtt)?,
        http: http(&raw.http)?,
        postgres: postgres(&raw.postgres)?,
        time_series: time_series(&raw.time_series)?,
        tls,
        query: query(&raw.query, raw.store.read_cache_bytes_max, &memory)?,
        store: store(&raw.store, &memory)?,
        ingest: ingest(&raw.ingest, &memory)?,
        inactivity_timeout: inactivity_timeout(&raw.devices)?,
        sensors,
        sensor_targets,
        log: log(raw.log)?,
        memory,
    })
}

fn mqtt(raw: &RawMqtt) -> Result<MqttConfig, ConfigError> {
    let packet = raw.packet_bytes_max;
    within("mqtt.packet_bytes_max", packet, mqtt_limits::PACKET_BYTES_MIN, mqtt_limits::PACKET_BYTES_MAX)?;
    within("mqtt.connect_timeout_s", raw.connect_timeout_s as usize, 1, 3_600)?;
    within("mqtt.receive_maximum", raw.receive_maximum.into(), 1, u16::MAX.into())?;
    within("mqtt.workers", raw.workers, 0, MQTT_WORKERS_MAX)?;
    within("mqtt.sys_interval_s", raw.sys_interval_s.into(), 0, mqtt_limits::SYS_INTERVAL_MAX_S.into())?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(MqttConfig {
        listen: address("mqtt.listen", &raw.listen)?,
        tls_listen: given_address("mqtt.tls_listen", &raw.tls_listen)?,
        workers: if raw.workers == 0 { (cores / 2).clamp(1, MQTT_WORKERS_MAX) } else { raw.workers },
        packet_bytes_max: packet,
        connect_timeout_s: raw.connect_timeout_s,
        keep_alive_max_s: raw.keep_alive_max_s,
        sys_interval_s: raw.sys_interval_s,
        publish_topics: topics("mqtt.publish_topics", &raw.publish_topics)?,
        subscribe_topics: topics("mqtt.subscribe_topics", &raw.subscribe_topics)?,
        receive_maximum: raw.receive_maximum,
        door: door::resolve(raw, usize::MAX)?,
    })
}

fn topics(key: &'static str, patterns: &[String]) -> Result<Vec<String>, ConfigError> {
    for pattern in patterns {
        check_pattern(pattern).map_err(|reason| ConfigError::value(key, format!("\"{pattern}\""), reason))?;
    }
    Ok(patterns.to_vec())
}

fn http(raw: &RawHttp) -> Result<HttpConfig, ConfigError> {
    within("http.body_bytes_max", raw.body_bytes_max, 1_024, http_limits::BODY_BYTES_MAX)?;
    Ok(HttpConfig {
        listen: address("http.listen", &raw.listen)?,
        tls_listen: given_address("http.tls_listen", &raw.tls_listen)?,
        body_bytes_max: raw.body_bytes_max,
        door: door::resolve(raw, HTTP_CONNECTIONS_MAX)?,
        public_read: raw.public_read,
    })
}

fn postgres(raw: &RawPostgres) -> Result<Option<PostgresConfig>, ConfigError> {
    let door = door::resolve(raw, POSTGRES_CONNECTIONS_MAX)?;
    if raw.listen.is_empty() {
        return Ok(None);
    }
    Ok(Some(PostgresConfig {
        listen: address("postgres.listen", &raw.listen)?,
        door,
        idle_timeout: (raw.idle_timeout_s > 0).then(|| Duration::from_secs(raw.idle_timeout_s.into())),
        tls_required: raw.tls_required,
    }))
}

fn time_series(raw: &RawTimeSeries) -> Result<TimeSeriesConfig, ConfigError> {
    Ok(TimeSeriesConfig {
        opentsdb: given_address("time_series.opentsdb_listen", &raw.opentsdb_listen)?,
        hitsdb: given_address("time_series.hitsdb_listen", &raw.hitsdb_listen)?,
        influx: given_address("time_series.influx_listen", &raw.influx_listen)?,
        gsn: given_address("time_series.gsn_listen", &raw.gsn_listen)?,
        gsn_push_targets: targets("time_series.gsn_push_targets", &raw.gsn_push_targets)?,
        open: open_role(raw)?,
    })
}

/// The role of callers without credentials.
fn open_role(raw: &RawTimeSeries) -> Result<Option<Role>, ConfigError> {
    let wrong = |reason: &str| {
        ConfigError::value("time_series.open_role", format!("\"{}\"", raw.open_role), reason.to_owned())
    };
    match (raw.open, raw.open_role.as_str()) {
        (false, "") => Ok(None),
        (false, _) => Err(wrong("it has no effect without time_series.open = true")),
        (true, "" | "operator") => Ok(Some(Role::Operator)),
        (true, "viewer") => Ok(Some(Role::Viewer)),
        (true, "administrator") => Ok(Some(Role::Administrator)),
        (true, _) => Err(wrong("use viewer, operator or administrator")),
    }
}

/// A list of servers that this one may connect to.
fn targets(key: &'static str, texts: &[String]) -> Result<Arc<AllowedTargets>, ConfigError> {
    let targets = AllowedTargets::parse(texts.iter().map(String::as_str));
    targets
        .map(Arc::new)
        .map_err(|(text, error)| ConfigError::value(key, format!("\"{text}\""), error.to_string()))
}

fn query(
    raw: &RawQuery,
    read_cache_bytes_max: usize,
    memory: &MemoryLimits,
) -> Result<QueryLimits, ConfigError> {
    within("query.timeout_s", raw.timeout_s as usize, 1, 86_400)?;
    within("query.memory_bytes_max", raw.memory_bytes_max, 1 << 20, usize::MAX)?;
    within("query.memory_bytes_total_max", raw.memory_bytes_total_max, raw.memory_bytes_max, usize::MAX)?;
    within("query.concurrent_max", raw.concurrent_max, 1, 1_024)?;
    within("query.waiting_max", raw.waiting_max, 0, 1_000_000)?;
    within("query.threads", raw.threads, 0, QUERY_THREADS_MAX)?;
    let timeout = Duration::from_secs(raw.timeout_s.into());
    Ok(QueryLimits {
        timeout,
        // With little memory few statements run at once, and those that wait are no sign of too many clients.
        waiting_time_max: if memory.is_small() { timeout } else { QueryLimits::default().waiting_time_max },
        memory_bytes_max: raw.memory_bytes_max,
        memory_bytes_total_max: raw.memory_bytes_total_max,
        running_max: raw.concurrent_max,
        waiting_max: raw.waiting_max,
        threads: raw.threads,
        batch_rows: memory.batch_rows,
        read_cache_bytes_max,
    })
}

fn store(raw: &RawStore, memory: &MemoryLimits) -> Result<StoreConfig, ConfigError> {
    within("store.commit_interval_us", raw.commit_interval_us as usize, 0, 1_000_000)?;
    within("store.memtable_flush_bytes", raw.memtable_flush_bytes, 1 << 20, usize::MAX)?;
    if raw.memtable_flush_bytes > raw.memtable_bytes_max / 2 {
        let half = raw.memtable_bytes_max / 2;
        let reason = format!(
            "a flush needs room to overlap with ingest: set it to {half} (half of store.memtable_bytes_max) or less"
        );
        return Err(ConfigError::value("store.memtable_flush_bytes", raw.memtable_flush_bytes, reason));
    }
    if raw.log_segment_bytes <= limits::LOG_PENDING_BYTES_MAX as u64 || raw.log_segment_bytes > 1 << 32 {
        let least = limits::LOG_PENDING_BYTES_MAX + 1;
        let reason =
            format!("one commit must fit into one segment: set it between {least} and {}", 1_u64 << 32);
        return Err(ConfigError::value("store.log_segment_bytes", raw.log_segment_bytes, reason));
    }
    within("store.zstd_level", raw.zstd_level, 1, limits::PART_ZSTD_LEVEL_MAX as usize)?;
    Ok(StoreConfig {
        commit_interval_us: raw.commit_interval_us,
        memtable_bytes_max: raw.memtable_bytes_max,
        memtable_flush_bytes: raw.memtable_flush_bytes,
        log_segment_bytes: raw.log_segment_bytes,
        latest_series_max: raw.latest_series_max,
        latest_bytes_max: raw.latest_bytes_max,
        read_cache_bytes_max: raw.read_cache_bytes_max,
        zstd_level: raw.zstd_level as i32,
        part_row_group_bytes: memory.row_group_bytes,
        merge_window_bytes: memory.merge_window_bytes,
        merge_inputs_max: memory.merge_inputs,
        read_batch_rows: memory.batch_rows,
        ttl_default: parse_ttl(&raw.ttl_default).map_err(|reason| {
            ConfigError::value("store.ttl_default", format!("\"{}\"", raw.ttl_default), reason)
        })?,
    })
}

/// Reads a time to live such as `90d`; `0` is `None`, which keeps rows forever.
pub(crate) fn parse_ttl(text: &str) -> Result<Option<Duration>, &'static str> {
    let unit_s = |unit| match unit {
        "d" => Some(86_400),
        "h" => Some(3_600),
        _ => None,
    };
    let parse = || match text {
        "0" => Some(None),
        _ => {
            let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
            let seconds = number.parse::<u64>().ok()?.checked_mul(unit_s(unit)?)?;
            (1..=TTL_S_MAX).contains(&seconds).then(|| Some(Duration::from_secs(seconds)))
        }
    };
    parse().ok_or("days or hours such as 90d or 36h are expected, or 0 to keep rows for good")
}

fn inactivity_timeout(raw: &RawDevices) -> Result<Duration, ConfigError> {
    let seconds = raw.inactivity_timeout_s;
    within("devices.inactivity_timeout_s", seconds as usize, 1, INACTIVITY_TIMEOUT_S_MAX)?;
    Ok(Duration::from_secs(seconds.into()))
}

fn sensors(data: &Path, raw: &RawSensors) -> PathBuf {
    if raw.directory.is_empty() { data.join(SENSORS_DIRECTORY) } else { PathBuf::from(&raw.directory) }
}

fn ingest(raw: &RawIngest, memory: &MemoryLimits) -> Result<IngestLimits, ConfigError> {
    within("ingest.keys_per_row_max", raw.keys_per_row_max, 1, limits::COLUMNS_PER_TABLE_MAX)?;
    within("ingest.rows_per_message_max", raw.rows_per_message_max, 1, limits::BATCH_ROWS_MAX)?;
    within("ingest.text_value_bytes_max", raw.text_value_bytes_max, 1, limits::BATCH_TEXT_BYTES_MAX)?;
    within("ingest.json_depth_max", raw.json_depth_max, 1, 128)?;
    for (key, value) in [
        ("ingest.columns_per_device_max", raw.columns_per_device_max),
        ("ingest.new_columns_per_minute_max", raw.new_columns_per_minute_max),
    ] {
        within(key, value, 1, limits::COLUMNS_PER_TABLE_MAX)?;
    }
    within("ingest.series_max", raw.series_max, 0, limits::SERIES_MAX)?;
    if raw.future_max_s < 0 {
        let reason = "a number of seconds from 0 on is expected";
        return Err(ConfigError::value("ingest.future_max_s", raw.future_max_s, reason));
    }
    let oldest: Moment = raw.oldest.parse().map_err(|_| {
        let reason = "a time such as 1971-01-01T00:00:00Z is expected";
        ConfigError::value("ingest.oldest", format!("\"{}\"", raw.oldest), reason)
    })?;
    Ok(IngestLimits {
        keys_per_row_max: raw.keys_per_row_max,
        rows_per_message_max: raw.rows_per_message_max,
        text_value_bytes_max: raw.text_value_bytes_max,
        json_depth_max: raw.json_depth_max,
        columns_per_device_max: raw.columns_per_device_max,
        new_columns_per_minute_max: raw.new_columns_per_minute_max,
        series_max: match raw.series_max {
            0 => memory.series_max(),
            series_max => series_max as u64,
        },
        future_max_s: raw.future_max_s,
        oldest: Timestamp::from_micros(oldest.micros()),
        // Depends on the table; the hub fills it in.
        ttl: None,
    })
}

fn log(raw: RawLog) -> Result<LogConfig, ConfigError> {
    let quoted = |text: &str| format!("\"{text}\"");
    if !is_filter(&raw.level) {
        let reason = "use error, warn, info, debug or trace, or a filter such as info,gateway=debug";
        return Err(ConfigError::value("log.level", quoted(&raw.level), reason));
    }
    let format = match raw.format.as_str() {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        other => return Err(ConfigError::value("log.format", quoted(other), "use text or json")),
    };
    Ok(LogConfig { level: raw.level, format })
}

/// Whether a text is a log level, or levels of modules. The parser of the filter takes any word for a module, so a misspelt
/// level would turn off all log lines.
pub(crate) fn is_filter(text: &str) -> bool {
    let is_level = |text: &str| text.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    text.split(',').all(|part| is_level(part.rsplit('=').next().unwrap_or_default()))
        && text.parse::<tracing_subscriber::filter::Targets>().is_ok()
}

fn address(key: &'static str, text: &str) -> Result<SocketAddr, ConfigError> {
    listen_address(text).map_err(|reason| ConfigError::value(key, format!("\"{text}\""), reason))
}

/// An address on which to listen. `localhost` is 127.0.0.1; other names have no addresses here.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| {
        "an address and a port such as 127.0.0.1:1883, localhost:1883 or [::1]:1883 are expected (port 0 takes a free one)"
    })
}

/// An address; `None` for an empty text.
fn given_address(key: &'static str, text: &str) -> Result<Option<SocketAddr>, ConfigError> {
    if text.is_empty() { Ok(None) } else { address(key, text).map(Some) }
}

fn within(key: &'static str, value: usize, least: usize, most: usize) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::value(key, value, format!("a number from {least} to {most} is expected")))
}
