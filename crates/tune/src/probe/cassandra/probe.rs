//! The probe.

use std::collections::BTreeMap;

use super::connection::{Connection, ConnectionError};
use super::protocol::Rows;
use crate::endpoint::Endpoint;
use crate::observation::{Group, Hidden};
use crate::probe::contract::{Identity, Probe, Sample};
use crate::probe::error::ProbeError;
use crate::probe::host::HostRoot;
use crate::probe::local;
use crate::value::Value;
use crate::version::Version;

const VERSION: &str = "SELECT release_version FROM system.local";
/// Virtual tables are there since version 4.0.
const SETTINGS: &str = "SELECT name, value FROM system_views.settings";
const POOLS: &str = "SELECT name, pending_tasks FROM system_views.thread_pools";
/// The schema has these tables since version 3.0.
const TABLES: &str = "SELECT keyspace_name, table_name, compaction, compression, default_time_to_live \
                      FROM system_schema.tables";

/// Settings that are numbers without a unit.
const NUMBERS: [&str; 3] = ["concurrent_writes", "concurrent_reads", "compaction_throughput_mb_per_sec"];
/// Facts that are pending tasks of a pool.
const PENDING: [(&str, &str); 2] = [("pending_mutations", "MutationStage"), ("pending_reads", "ReadStage")];

/// Names that the probe reads from each table.
const SETTING_NAMES: [&str; 5] = [
    "concurrent_writes",
    "concurrent_reads",
    "compaction_throughput",
    "compaction_throughput_mb_per_sec",
    "native_transport_rate_limiting_enabled",
];
const PENDING_NAMES: [&str; 2] = ["pending_mutations", "pending_reads"];
const TABLE_NAMES: [&str; 3] = ["compaction", "compression", "default_time_to_live"];

/// Names that the native protocol does not show, with the reason.
const NOT_SHOWN: [(&str, &str); 5] = [
    ("pending_compactions", "only JMX and nodetool compactionstats show it"),
    ("mutation_dropped", "only JMX and nodetool tpstats show it"),
    ("nofile", "the server does not show it: look at /proc/PID/limits on its machine"),
    ("shares_host_with_server", "only the user knows which programs share the machine"),
    ("commitlog_shares_disk", "the server does not show which disks its directories are on"),
];

/// A node that is looked at.
#[derive(Debug)]
struct CassandraProbe {
    connection: Connection,
    target: String,
    host: String,
    identity: Identity,
}

/// Connects to a node.
pub(in crate::probe) fn connect(endpoint: &Endpoint) -> Result<Box<dyn Probe>, ProbeError> {
    let target = format!("cassandra://{endpoint:?}");
    let failed = |error: ConnectionError| error.into_probe_error(&target, "system.local");
    let mut connection = Connection::open(endpoint).map_err(failed)?;
    let rows = connection.rows(VERSION).map_err(failed)?;
    let version = rows.iter().next().and_then(|row| row.text("release_version")).map(str::to_owned);
    // ScyllaDB states that it is an old Cassandra. Its settings are others.
    let is_scylla = connection.supported.iter().any(|name| name.starts_with("SCYLLA_"));
    let (variant, name) = if is_scylla { ("scylladb", "ScyllaDB") } else { ("cassandra", "Cassandra") };
    let identity = Identity {
        product: "cassandra",
        title: format!("{name}, node {}:{}", endpoint.host, endpoint.port),
        variant: variant.to_owned(),
        version,
        role: None,
    };
    Ok(Box::new(CassandraProbe { connection, target, host: endpoint.host.clone(), identity }))
}

impl Probe for CassandraProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut hidden: Vec<Hidden> = NOT_SHOWN.iter().map(|(name, why)| Hidden::new(*name, *why)).collect();
        let mut sample = Sample::default();
        if self.has_virtual_tables() {
            if let Some(rows) = self.rows("system_views.settings", SETTINGS, &SETTING_NAMES, &mut hidden)? {
                sample.settings = settings(&rows);
            }
            if let Some(rows) = self.rows("system_views.thread_pools", POOLS, &PENDING_NAMES, &mut hidden)? {
                sample.facts = pending(&rows);
            }
        } else {
            let names = SETTING_NAMES.iter().chain(&PENDING_NAMES);
            hidden.extend(names.map(|name| Hidden::new(*name, "the server shows it since version 4.0")));
        }
        if let Some(rows) = self.rows("system_schema.tables", TABLES, &TABLE_NAMES, &mut hidden)? {
            sample.groups.insert("table".to_owned(), tables(&rows));
        }
        let of_machine = local::of_host(&self.host, &HostRoot::new("/"));
        if of_machine.is_empty() {
            let why =
                "the server does not show its machine: run `tacho tune` there, with the address 127.0.0.1";
            let names = ["cores", "rotational", "vm.max_map_count", "swap_bytes", "read_ahead_kb"];
            hidden.extend(names.iter().map(|name| Hidden::new(*name, why)));
        }
        sample.settings.extend(of_machine);
        sample.hidden = hidden;
        Ok(sample)
    }
}

impl CassandraProbe {
    fn has_virtual_tables(&self) -> bool {
        let version = self.identity.version.as_deref().and_then(Version::parse);
        version.is_none_or(|version| Version::parse("4.0").is_some_and(|first| version >= first))
    }

    /// The rows of a table. A table that the role may not read, or that the version does not have, is named in `hidden`.
    fn rows(
        &mut self,
        table: &'static str,
        statement: &str,
        names: &[&str],
        hidden: &mut Vec<Hidden>,
    ) -> Result<Option<Rows>, ProbeError> {
        match self.connection.rows(statement) {
            Ok(rows) => Ok(Some(rows)),
            Err(error @ (ConnectionError::Unauthorized(_) | ConnectionError::Invalid(_))) => {
                let why = match error {
                    ConnectionError::Unauthorized(_) => {
                        format!("{error}; GRANT SELECT ON {table} TO <role> allows it")
                    }
                    error => error.to_string(),
                };
                hidden.extend(names.iter().map(|name| Hidden::new(*name, why.clone())));
                Ok(None)
            }
            Err(error) => Err(error.into_probe_error(&self.target, table)),
        }
    }
}

/// The settings that rules use.
fn settings(rows: &Rows) -> BTreeMap<String, Value> {
    let read = |name: &str, value: &str| match name {
        "native_transport_rate_limiting_enabled" => value.parse().ok().map(Value::Boolean),
        "compaction_throughput" => mebibytes_per_second(value),
        name if NUMBERS.contains(&name) => value.parse().ok().map(Value::Number),
        _ => None,
    };
    let setting = |(name, value): (&str, &str)| Some((name.to_owned(), read(name, value)?));
    rows.iter().filter_map(|row| setting((row.text("name")?, row.text("value")?))).collect()
}

/// The MiB of a rate such as `64MiB/s` (`cassandra.yaml`, since 4.1).
fn mebibytes_per_second(text: &str) -> Option<Value> {
    let units = [("MiB/s", 1.0), ("KiB/s", 1.0 / 1_024.0), ("B/s", 1.0 / 1_048_576.0)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    number.trim().parse::<f64>().ok().map(|number| Value::Number(number * factor))
}

/// The pending tasks of the pools that rules use.
fn pending(rows: &Rows) -> BTreeMap<String, Value> {
    let fact = |(name, pool): &(&str, &str)| {
        let row = rows.iter().find(|row| row.text("name") == Some(*pool))?;
        Some(((*name).to_owned(), Value::Number(row.number("pending_tasks")?)))
    };
    PENDING.iter().filter_map(fact).collect()
}

/// The tables of users.
fn tables(rows: &Rows) -> Vec<Group> {
    let table = |row: super::protocol::Row<'_>| {
        let (keyspace, name) = (row.text("keyspace_name")?, row.text("table_name")?);
        let is_own = keyspace != "system" && !keyspace.starts_with("system_");
        let class = |options: &BTreeMap<String, String>| {
            let class = options.get("class").or_else(|| options.get("sstable_compression"));
            class.map(|class| class.rsplit('.').next().unwrap_or_default().to_owned())
        };
        let settings = [
            ("compaction", row.map("compaction").and_then(class).map(Value::Text)),
            // A table without compression has no class.
            ("compression", row.map("compression").map(|it| Value::Text(class(it).unwrap_or_default()))),
            ("default_time_to_live", row.number("default_time_to_live").map(Value::Number)),
        ];
        let settings =
            settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        is_own.then(|| Group { name: format!("{keyspace}.{name}"), settings })
    };
    rows.iter().filter_map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        let rate = |text: &str| mebibytes_per_second(text);
        assert_eq!(["64MiB/s", "512KiB/s", "0MiB/s"].map(rate), [64.0, 0.5, 0.0].map(|n| Some(n.into())));
        assert_eq!(["64", "fast", "MiB/s"].map(rate), [const { None }; 3]);
    }
}
