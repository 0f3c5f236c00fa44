//! Aliases of built-in scenarios: names that users look for.

/// A name for a scenario with some keys changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    pub name: &'static str,
    /// The built-in scenario.
    pub scenario: &'static str,
    /// The changed keys, `path.to.key=value`.
    pub sets: &'static [&'static str],
}

const fn alias(name: &'static str, scenario: &'static str, sets: &'static [&'static str]) -> Alias {
    Alias { name, scenario, sets }
}

const POSTGRES: &str = "target.url=postgres://sbtest@127.0.0.1:5432/sbtest";

pub const ALIASES: &[Alias] = &[
    alias("mqtt", "thingsboard", &[]),
    alias("mqtt-qos0", "thingsboard", &["dataset.qos=0"]),
    alias("mqtt-qos1", "thingsboard", &["dataset.qos=1"]),
    alias("mqtt-reconnect", "thingsboard-reconnect", &[]),
    alias("redis", "gemini-str32", &[]),
    alias("redis-get", "gemini-str32", &[]),
    // Writes have no hits, and each connection writes its own keys.
    alias(
        "redis-set",
        "gemini-str32",
        &["phase.run.operations=['set']", "operation.set.pattern=R", "gates.hit_share_min=0"],
    ),
    alias("redis-hash", "gemini-hash", &[]),
    alias("redis-mix", "gemini-mix", &[]),
    alias("mysql", "sysbench-oltp-read-write", &[]),
    alias("mariadb", "sysbench-oltp-read-write", &[]),
    alias("mysql-select", "sysbench-oltp-point-select", &[]),
    alias("mysql-insert", "sysbench-oltp-insert", &[]),
    alias("postgres", "sysbench-oltp-read-write", &[POSTGRES]),
    alias("postgres-select", "sysbench-oltp-point-select", &[POSTGRES]),
    alias("postgres-insert", "sysbench-oltp-insert", &[POSTGRES]),
    alias("hbase", "hbase-random-write", &[]),
    alias("hbase-write-100", "hbase-random-write", &["operation.write.write_buffer=100"]),
    alias("hbase-read", "hbase-random-read", &[]),
    alias("http", "http-qps", &[]),
    alias("elasticsearch", "es-geonames-bulk", &[]),
    alias("es", "es-geonames-bulk", &[]),
    alias("opensearch", "es-geonames-bulk", &[]),
    alias("es-search", "es-geonames-search", &[]),
    alias("tcp", "slb-s1", &[]),
    alias("cpu", "host-cpu", &[]),
    alias("disk", "host-disk", &[]),
];

impl Alias {
    /// The alias with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALIASES.iter().find(|alias| alias.name == name)
    }

    /// The aliases of a scenario.
    pub fn of(scenario: &str) -> impl Iterator<Item = &'static Self> {
        ALIASES.iter().filter(move |alias| alias.scenario == scenario)
    }
}
