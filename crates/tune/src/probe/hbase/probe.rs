//! The probe.

use std::collections::BTreeMap;
use std::path::Path;

use clients::http::{HttpAnswer, HttpClient, HttpError};

use super::beans::{self, Bean, TableOfServer};
use super::configuration::{Configuration, ConfigurationError};
use super::tables;
use crate::endpoint::Endpoint;
use crate::limits::REGION_SERVERS_MAX;
use crate::observation::{Group, Hidden};
use crate::probe::contract::{Identity, Probe, Sample};
use crate::probe::error::ProbeError;
use crate::probe::http::{self, Wanted, probe_error};
use crate::value::Value;

/// Settings of region servers that are numbers.
const NUMBERS: [&str; 5] = [
    "hbase.regionserver.handler.count",
    "hfile.block.cache.size",
    "hbase.regionserver.global.memstore.size",
    "hbase.hregion.memstore.flush.size",
    "hbase.hstore.blockingStoreFiles",
];
/// Defaults in the code of HBase, which `/conf` does not list (HBase reference guide, default configuration).
const DEFAULTS: [(&str, f64); 1] = [("hbase.regionserver.global.memstore.size", 0.4)];
/// Settings of clients that are numbers.
const CLIENT_NUMBERS: [&str; 2] = ["hbase.client.scanner.caching", "hbase.client.scanner.max.result.size"];
/// Counters of the bean of the server that have the name of the rules.
const COUNTERS: [&str; 6] = [
    "writeRequestCount",
    "readRequestCount",
    "blockedRequestCount",
    "updatesBlockedTime",
    "blockCacheMissCount",
    "blockCacheHitCount",
];
/// Names that a server does not show, with the reason.
const NOT_ON_THE_SERVER: [(&str, &str); 9] = [
    ("client.autoflush", "it is in the program of the client"),
    ("client.buffered_mutator", "it is in the program of the client"),
    ("scan.families", "it is in the program of the client"),
    ("scan.cache_blocks", "it is in the program of the client"),
    ("families_needed", "only the user knows it"),
    ("rows_wanted", "only the user knows it"),
    ("loss_allowed", "only the user knows it"),
    ("scan_rows", "no counter of a server has it"),
    ("row_bytes", "no counter of a server has it"),
];

/// Configuration and counters.
const WANTED: Wanted = Wanted {
    what: "configuration and counters",
    remedy: "They are for administrators only if hadoop.security.instrumentation.requires.admin is true",
};

/// A cluster that is looked at.
#[derive(Debug)]
struct HbaseProbe {
    master: HttpClient,
    configuration: Configuration,
    client: Option<Configuration>,
    identity: Identity,
}

/// A region server at one moment.
struct RegionServer {
    configuration: Configuration,
    server: Bean,
    regions: Bean,
    calls: Bean,
    jvm: Bean,
    machine: Bean,
}

/// Connects to the master.
pub(in crate::probe) fn connect(
    endpoint: &Endpoint,
    client_config: Option<&Path>,
) -> Result<Box<dyn Probe>, ProbeError> {
    let master = http::client(&endpoint.host, endpoint.port);
    if endpoint.login.is_some() {
        let reason =
            "the HTTP ports of HBase do not accept a password; leave USER:PASSWORD@ out of the target"
                .to_owned();
        return Err(ProbeError::Login { target: master.base().to_owned(), reason });
    }
    let client = client_config.map(|path| {
        let failed = |error: ConfigurationError| error.to_string();
        let file = Configuration::read_file(path).map_err(failed);
        file.map_err(|reason| ProbeError::ClientConfig { path: path.to_owned(), reason })
    });
    let configuration = configuration(&master)?;
    let version = configuration.get("hbase.defaults.for.version").map(str::to_owned);
    if version.is_none() {
        let reason =
            "/conf is that of another program of Hadoop: it has no hbase.defaults.for.version".to_owned();
        return Err(other_product(&master, reason));
    }
    let identity = Identity {
        product: "hbase",
        title: format!("HBase, master {}", master.base()),
        variant: "hbase".to_owned(),
        version,
        role: None,
    };
    Ok(Box::new(HbaseProbe { master, configuration, client: client.transpose()?, identity }))
}

fn configuration(server: &HttpClient) -> Result<Configuration, ProbeError> {
    let failed = |error: &HttpError| probe_error(error, server.base(), WANTED);
    let answer = server.get("/conf").map_err(|error| failed(&error))?;
    let is_xml = answer.text().trim_start().starts_with("<?xml");
    if !answer.is_success() && (is_xml || matches!(answer.status, 401 | 403)) {
        return Err(failed(&HttpError::Status(Box::new(answer))));
    }
    Configuration::read(&answer.text())
        .map_err(|error| other_product(server, format!("/conf is {} ({error})", answer.kind())))
}

fn other_product(server: &HttpClient, reason: String) -> ProbeError {
    let reason = format!("{reason}. Name the HTTP port of the master, 16010 by default");
    ProbeError::OtherProduct { target: server.base().to_owned(), expected: "an HBase master", reason }
}

fn bean(server: &HttpClient, name: &str) -> Result<Bean, ProbeError> {
    let answer = server.json(&Bean::path(name));
    answer.map(Bean::read).map_err(|error| probe_error(&error, server.base(), WANTED))
}

impl RegionServer {
    fn read(http: &HttpClient) -> Result<Self, ProbeError> {
        Ok(Self {
            configuration: configuration(http)?,
            server: bean(http, beans::SERVER)?,
            regions: bean(http, beans::REGIONS)?,
            calls: bean(http, beans::CALLS)?,
            jvm: bean(http, beans::JVM)?,
            machine: bean(http, beans::MACHINE)?,
        })
    }
}

impl Probe for HbaseProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut hidden: Vec<Hidden> =
            NOT_ON_THE_SERVER.iter().map(|(name, why)| Hidden::new(*name, *why)).collect();
        let servers = self.region_servers()?;
        let mut settings = server_settings(&servers, &mut hidden);
        settings.extend(self.client_settings(&mut hidden));
        Ok(Sample {
            settings,
            facts: facts(&servers),
            counters: counters(&servers),
            groups: self
                .tables(&servers, &mut hidden)
                .map(|tables| ("table".to_owned(), tables))
                .into_iter()
                .collect(),
            uptime_s: uptime_s(&servers),
            hidden,
            ..Sample::default()
        })
    }
}

impl HbaseProbe {
    /// The region servers that the master knows, up to a limit.
    fn region_servers(&self) -> Result<Vec<RegionServer>, ProbeError> {
        let master = bean(&self.master, beans::MASTER)?;
        let Some(live) = master.text("tag.liveRegionServers") else {
            return Err(other_product(&self.master, "it has no bean of a master in /jmx".to_owned()));
        };
        // Host, port for calls and time of the start. The port for HTTP is a setting, and the same for all.
        let hosts = live.split(';').filter_map(|name| name.split(',').next()).filter(|host| !host.is_empty());
        let port = self.configuration.number("hbase.regionserver.info.port").unwrap_or(16_030.0);
        hosts
            .take(REGION_SERVERS_MAX)
            .map(|host| RegionServer::read(&http::client(host, port as u16)))
            .collect()
    }

    /// The settings of the client's file; where it is silent, the defaults of this version.
    fn client_settings(&self, hidden: &mut Vec<Hidden>) -> Vec<(String, Value)> {
        let Some(client) = &self.client else {
            let why = "it is a setting of the client: give the client's hbase-site.xml with --client-config";
            hidden.extend(CLIENT_NUMBERS.iter().map(|name| Hidden::new(*name, why)));
            return Vec::new();
        };
        let value = |name: &str| client.number(name).or_else(|| self.configuration.number(name));
        CLIENT_NUMBERS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Value::Number(value(name)?))))
            .collect()
    }

    /// The tables, if the master shows them.
    fn tables(&self, servers: &[RegionServer], hidden: &mut Vec<Hidden>) -> Option<Vec<Group>> {
        let mut tables = match self.master.get(tables::PATH).and_then(HttpAnswer::success) {
            Ok(page) => tables::read(&page.text()),
            Err(error) => {
                let why = probe_error(&error, self.master.base(), WANTED).to_string();
                let names = ["durability", "bloomfilter", "compression", "regions"];
                hidden.extend(names.map(|name| Hidden::new(name, why.clone())));
                return None;
            }
        };
        let on_servers = tables_of(servers);
        for table in &mut tables {
            let on_servers = on_servers.get(&table.name).copied().unwrap_or_default();
            table.settings.insert("regions".to_owned(), Value::Number(on_servers.regions));
            table.settings.insert("point_reads".to_owned(), Value::Boolean(on_servers.gets > 0.0));
        }
        Some(tables)
    }
}

/// Regions and reads of each table, on all servers.
fn tables_of(servers: &[RegionServer]) -> BTreeMap<String, TableOfServer> {
    let mut tables = BTreeMap::<String, TableOfServer>::new();
    for (name, of_server) in servers.iter().flat_map(|server| server.regions.tables()) {
        let table = tables.entry(name).or_default();
        table.regions += of_server.regions;
        table.gets += of_server.gets;
    }
    tables
}

/// The settings that all region servers have in common.
fn server_settings(servers: &[RegionServer], hidden: &mut Vec<Hidden>) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    let mut add = |name: &str, read: &dyn Fn(&Configuration) -> Option<Value>| {
        let mut values: Vec<Option<Value>> =
            servers.iter().map(|server| read(&server.configuration)).collect();
        values.dedup();
        if values.len() > 1 {
            hidden.push(Hidden::new(name, "the region servers have different values"));
        } else if let Some(Some(value)) = values.pop() {
            settings.insert(name.to_owned(), value);
        }
    };
    for name in NUMBERS {
        add(name, &|configuration| {
            let default = DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            configuration.number(name).or(default).map(Value::Number)
        });
    }
    add("hbase.bucketcache.ioengine", &|configuration| {
        Some(Value::from(configuration.get("hbase.bucketcache.ioengine").unwrap_or_default()))
    });
    let name = "dfs.client.read.shortcircuit";
    add(name, &|configuration| configuration.get(name)?.parse().ok().map(Value::Boolean));
    settings
}

fn facts(servers: &[RegionServer]) -> BTreeMap<String, Value> {
    let smallest =
        |read: &dyn Fn(&RegionServer) -> Option<f64>| servers.iter().filter_map(read).reduce(f64::min);
    let numbers = [
        ("heap_bytes", smallest(&|it| Some(it.jvm.number("MemHeapMaxM")? * 1_048_576.0))),
        ("memory_bytes", smallest(&|it| it.machine.number("TotalPhysicalMemorySize"))),
        ("cores", smallest(&|it| it.machine.number("AvailableProcessors"))),
        ("region_servers", Some(servers.len() as f64)),
    ];
    let mut facts: BTreeMap<String, Value> = numbers
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::Number(value?))))
        .collect();
    let local: Option<Vec<bool>> = servers.iter().map(reads_locally).collect();
    if let Some(local) = local.filter(|local| !local.is_empty()) {
        facts.insert("local_reads".to_owned(), Value::Boolean(local.iter().any(|local| *local)));
    }
    facts
}

/// Whether a server reads blocks of a data node on its machine.
fn reads_locally(server: &RegionServer) -> Option<bool> {
    let is_hdfs = server.configuration.get("hbase.rootdir")?.starts_with("hdfs:");
    Some(is_hdfs && server.server.number("percentFilesLocal")? > 0.0)
}

fn counters(servers: &[RegionServer]) -> BTreeMap<String, f64> {
    let sum = |read: &dyn Fn(&RegionServer) -> Option<f64>| -> Option<f64> {
        servers
            .iter()
            .map(read)
            .collect::<Option<Vec<f64>>>()
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum())
    };
    let mut counters: BTreeMap<String, f64> = COUNTERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), sum(&|it| it.server.number(name))?)))
        .collect();
    let others = [
        ("scan_rpcs", sum(&|it| it.server.number("rpcScanRequestCount"))),
        ("queue_full_calls", sum(&|it| it.calls.number("exceptions.callQueueTooBig"))),
        // Rules compare it with a share of the time of one process.
        ("GcTimeMillis", sum(&|it| it.jvm.number("GcTimeMillis")).map(|sum| sum / servers.len() as f64)),
    ];
    counters.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    counters
}

/// The longest time that a region server runs. Its clock is compared with that of this machine.
fn uptime_s(servers: &[RegionServer]) -> Option<f64> {
    let now_ms = std::time::UNIX_EPOCH.elapsed().ok()?.as_millis() as f64;
    let starts = servers.iter().filter_map(|server| server.server.number("regionServerStartTime"));
    starts.map(|start_ms| (now_ms - start_ms) / 1_000.0).filter(|uptime_s| *uptime_s > 0.0).reduce(f64::max)
}
