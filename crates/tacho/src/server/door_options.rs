//! The options of the doors, from the configuration and the open-file limit.

use std::sync::Arc;

use gateway::http::{HttpOptions, PageFile};
use gateway::mqtt::{MqttEntrance, MqttOptions};
use gateway::postgres::PostgresOptions;
use gateway::tls::Tls;
use serde_json::{Map, Value, json};

use super::open_files::OpenFiles;
use crate::config::{Config, PostgresConfig};

pub(super) fn postgres_options(
    config: &Config,
    postgres: &PostgresConfig,
    tls: Option<Arc<Tls>>,
) -> PostgresOptions {
    PostgresOptions {
        public_read: config.http.public_read,
        limits: postgres.door.limits(postgres_connections_max(postgres), share),
        proxies: postgres.door.proxies.clone(),
        idle_timeout: postgres.idle_timeout,
        tls,
        tls_required: postgres.tls_required,
        memory: config.memory.doors,
    }
}

pub(super) fn http_options(config: &Config, files: OpenFiles, mqtt: Option<MqttEntrance>) -> HttpOptions {
    HttpOptions {
        door: hub::Door::Http,
        open: config.time_series.open,
        gsn_push_targets: Arc::clone(&config.time_series.gsn_push_targets),
        listen: config.http.listen,
        body_bytes_max: config.http.body_bytes_max,
        public_read: config.http.public_read,
        limits: config.http.door.limits(files.http_connections_max(), share),
        proxies: config.http.door.proxies.clone(),
        open_files_max: files.cap,
        mqtt,
        memory: config.memory.doors,
        version: env!("CARGO_PKG_VERSION"),
        settings: public_settings(config, files),
        page: page_file,
    }
}

fn page_file(name: &str) -> Option<PageFile> {
    let page::File { bytes, content_type, sha256, immutable } = page::file(name)?;
    Some(PageFile { bytes, content_type, sha256, immutable })
}

/// The options of another port with the interface of the HTTP door.
pub(super) fn time_series_options(config: &Config, files: OpenFiles, door: hub::Door) -> HttpOptions {
    HttpOptions { door, ..http_options(config, files, None) }
}

/// The settings that `/api/status` shows to everybody: those that `tacho tune` has rules for.
fn public_settings(config: &Config, files: OpenFiles) -> Map<String, Value> {
    let (store, query) = (&config.store, &config.query);
    // Settings have whole hours.
    let ttl = store.ttl_default.map_or_else(|| "0".to_owned(), |ttl| format!("{}h", ttl.as_secs() / 3_600));
    let settings = [
        ("store.memtable_bytes_max", json!(store.memtable_bytes_max)),
        ("store.commit_interval_us", json!(store.commit_interval_us)),
        ("store.ttl_default", json!(ttl)),
        ("query.memory_bytes_total_max", json!(query.memory_bytes_total_max)),
        ("query.memory_bytes_max", json!(query.memory_bytes_max)),
        ("query.concurrent_max", json!(query.running_max)),
        // The soft limit, which the server has raised to the hard one.
        ("nofile.hard", json!(files.cap)),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The connections that one address may have: three quarters of all, so that one peer does not keep all others out.
fn share(connections_max: usize) -> usize {
    connections_max - connections_max / 4
}

fn postgres_connections_max(postgres: &PostgresConfig) -> usize {
    postgres.door.connections_max.unwrap_or(gateway::postgres::limits::CONNECTIONS_MAX)
}

pub(super) fn mqtt_options(config: &Config, files: OpenFiles) -> MqttOptions {
    let http = config.http.door.connections_max.unwrap_or_else(|| files.http_connections_max());
    let time_series = &config.time_series;
    let ports = [time_series.opentsdb, time_series.hitsdb, time_series.influx, time_series.gsn];
    let ports = ports.into_iter().flatten().count();
    let http = http * (1 + ports);
    let others = http + config.postgres.as_ref().map_or(0, postgres_connections_max);
    let possible = files.mqtt_connections_max(others);
    if possible < others {
        tracing::warn!(
            possible,
            others,
            cap = files.cap,
            "the open-file limit leaves few connections for MQTT; raise it (ulimit -Hn, LimitNOFILE=) or lower \
             http.connections_max and postgres.connections_max"
        );
    }
    let (memory, config) = (config.memory.doors, &config.mqtt);
    let wanted = config.door.connections_max.unwrap_or(possible);
    if wanted > possible {
        tracing::warn!(
            wanted,
            possible,
            cap = files.cap,
            "mqtt.connections_max is more than the open-file limit allows; raise it (ulimit -Hn, LimitNOFILE=)"
        );
    }
    // Devices of a mobile network share a few addresses, so one address may have all connections.
    let mut limits = config.door.limits(possible, |connections_max| connections_max);
    limits.connections_max = limits.connections_max.min(possible);
    MqttOptions {
        workers: config.workers,
        packet_bytes_max: config.packet_bytes_max,
        receive_maximum: config.receive_maximum,
        connect_timeout_s: config.connect_timeout_s,
        keep_alive_max_s: config.keep_alive_max_s,
        sys_interval_s: config.sys_interval_s,
        publish_topics: config.publish_topics.clone(),
        subscribe_topics: config.subscribe_topics.clone(),
        limits,
        proxies: config.door.proxies.clone(),
        memory,
        ..MqttOptions::default()
    }
}
