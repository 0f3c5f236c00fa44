//! The scenarios of the repository, compiled into the program.

use super::alias::ALIASES;
use super::typed::nearest;

/// A compiled-in scenario.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal = $file:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("../../../../scenarios/", $file)) }),*]
    };
}

/// All built-in scenarios, in the order of the list.
pub const BUILTIN: &[Builtin] = builtin![
    "thingsboard" = "thingsboard.toml",
    "thingsboard-reconnect" = "thingsboard-reconnect.toml",
    "mqtt-10k" = "mqtt-10k.toml",
    "mqtt-tls-5k" = "mqtt-tls-5k.toml",
    "mqtt-closed" = "mqtt-closed.toml",
    "gateway" = "gateway.toml",
    "broker-pairs" = "broker-pairs.toml",
    "broker-fanout" = "broker-fanout.toml",
    "broker-pairs-closed" = "broker-pairs-closed.toml",
    "broker-fanout-closed" = "broker-fanout-closed.toml",
    "broker-offline" = "broker-offline.toml",
    "broker-connects" = "broker-connects.toml",
    "commands-rpc" = "commands-rpc.toml",
    "commands-attributes" = "commands-attributes.toml",
    "dashboards-fanout" = "dashboards-fanout.toml",
    "dashboards-page" = "dashboards-page.toml",
    "devices-create" = "devices-create.toml",
    "alarm-rules" = "alarm-rules.toml",
    "ledger" = "ledger.toml",
    "reads" = "reads.toml",
    "gemini-hash" = "gemini-hash.toml",
    "gemini-str32" = "gemini-str32.toml",
    "gemini-str1250" = "gemini-str1250.toml",
    "gemini-mix" = "gemini-mix.toml",
    "sysbench-oltp-read-write" = "sysbench-oltp-read-write.toml",
    "sysbench-oltp-read-only" = "sysbench-oltp-read-only.toml",
    "sysbench-oltp-write-only" = "sysbench-oltp-write-only.toml",
    "sysbench-oltp-point-select" = "sysbench-oltp-point-select.toml",
    "sysbench-oltp-insert" = "sysbench-oltp-insert.toml",
    "sysbench-oltp-update-index" = "sysbench-oltp-update-index.toml",
    "sysbench-oltp-update-non-index" = "sysbench-oltp-update-non-index.toml",
    "sysbench-oltp-delete" = "sysbench-oltp-delete.toml",
    "sysbench-oltp-bulk-insert" = "sysbench-oltp-bulk-insert.toml",
    "sysbench-select-random-points" = "sysbench-select-random-points.toml",
    "sysbench-select-random-ranges" = "sysbench-select-random-ranges.toml",
    "hbase-random-write" = "hbase-random-write.toml",
    "hbase-random-read" = "hbase-random-read.toml",
    "hbase-scan" = "hbase-scan.toml",
    "http-qps" = "http-qps.toml",
    "http-steps" = "http-steps.toml",
    "rest-session" = "rest-session.toml",
    "http2-qps" = "http2-qps.toml",
    "es-geonames-bulk" = "es-geonames-bulk.toml",
    "es-geonames-search" = "es-geonames-search.toml",
    "es-logs-bulk" = "es-logs-bulk.toml",
    "hitsdb" = "hitsdb.toml",
    "eval-queries" = "eval-queries.toml",
    "gsn-queries" = "gsn-queries.toml",
    "gsn-insertion" = "gsn-insertion.toml",
    "tsbs-iot" = "tsbs-iot.toml",
    "host-cpu" = "host-cpu.toml",
    "host-disk" = "host-disk.toml",
    "slb-s1" = "slb-s1.toml",
    "slb-s2" = "slb-s2.toml",
    "slb-s3" = "slb-s3.toml",
    "slb-s4" = "slb-s4.toml",
    "slb-s5" = "slb-s5.toml",
    "slb-s6" = "slb-s6.toml",
];

impl Builtin {
    /// The scenario with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        BUILTIN.iter().find(|builtin| builtin.name == name)
    }
}

/// The error text for an unknown name.
pub(super) fn unknown(name: &str) -> String {
    let names = BUILTIN.iter().map(|builtin| builtin.name).chain(ALIASES.iter().map(|alias| alias.name));
    let meant = nearest(name, names).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("there is no scenario `{name}` and no such file{meant} `tacho bench list` has all scenarios")
}
