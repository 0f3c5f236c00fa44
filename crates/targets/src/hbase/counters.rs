//! Counters of region servers: the requests that each region of the table has served, from `AdminService.GetRegionLoad`.
//! A server calculates them when it is asked, so they are exact at once; its `/jmx` page is some seconds behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use load::result::Check;
use load::sampling::ValueKind::{Counter, Gauge};
use load::sampling::{Readings, Source};

use super::cluster::Cluster;
use super::connection::{CallError, Connection, Server};
use super::messages::{GetRegionLoadRequest, GetRegionLoadResponse};
use super::table;
use super::tally::Totals;

/// The counters of one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RegionCounters {
    /// Rows read: each get, and each row that a scan returns.
    pub(super) reads: u64,
    /// Rows written.
    pub(super) writes: u64,
    /// Files of its store, and their size in MiB.
    pub(super) files: u64,
    /// See [`Self::files`].
    pub(super) files_mib: u64,
    /// Rows in memory, MiB.
    pub(super) memory_mib: u64,
}

/// The counters of all regions of the table, by server and region.
pub(super) type Counters = BTreeMap<(Server, Vec<u8>), RegionCounters>;

/// Reads the counters of all regions.
pub(super) fn read(cluster: &Cluster) -> Result<Counters, String> {
    let mut counters = Counters::new();
    for server in cluster.regions()?.servers() {
        let request = GetRegionLoadRequest { table_name: Some(table::name(&cluster.table)) };
        let answer: Result<GetRegionLoadResponse, CallError> =
            Connection::open(&server, "AdminService", cluster.silence)
                .and_then(|mut connection| connection.call("GetRegionLoad", &request));
        let answer = answer.map_err(|error| format!("{server} answers GetRegionLoad: {error}"))?;
        for load in answer.region_loads {
            let region = RegionCounters {
                reads: load.read_requests_count.unwrap_or(0),
                writes: load.write_requests_count.unwrap_or(0),
                files: load.storefiles.unwrap_or(0).into(),
                files_mib: load.storefile_size_mb.unwrap_or(0).into(),
                memory_mib: load.mem_store_size_mb.unwrap_or(0).into(),
            };
            counters.insert((server.clone(), load.region_specifier.value), region);
        }
    }
    Ok(counters)
}

/// Compares the growth of the counters with what was sent. The error gives the reason why they cannot be compared.
pub(super) fn check(before: &Counters, after: &Counters, sent: &Totals) -> Result<Vec<Check>, String> {
    if !before.keys().eq(after.keys()) {
        return Err(
            "regions were moved, split or merged during the phase, which sets their counters to zero"
                .to_owned(),
        );
    }
    if sent.lost > 0 || sent.refused > 0 || sent.repeated > 0 {
        return Err(format!(
            "{} calls were repeated, {} lost and {} refused; servers count them or do not, and nobody can tell",
            sent.repeated, sent.lost, sent.refused
        ));
    }
    let sum = |counters: &Counters, of: fn(&RegionCounters) -> u64| counters.values().map(of).sum::<u64>();
    let grown = |of| sum(after, of).wrapping_sub(sum(before, of));
    let check = |what: &str, expected: u64, found: u64| Check {
        what: what.to_owned(),
        expected: expected.to_string(),
        found: found.to_string(),
        passed: expected == found,
    };
    Ok(vec![
        check("rows written that the region servers counted", sent.puts, grown(|region| region.writes)),
        check(
            "rows read that the region servers counted",
            sent.gets + sent.scanned,
            grown(|region| region.reads),
        ),
    ])
}

/// The counters each second.
pub(super) struct RegionServers {
    cluster: Arc<Cluster>,
}

impl RegionServers {
    /// The counters of a cluster's table.
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }
}

impl Source for RegionServers {
    fn prefix(&self) -> &str {
        "hbase"
    }

    fn read(&mut self) -> Result<Readings, String> {
        let counters = read(&self.cluster)?;
        let sum = |of: fn(&RegionCounters) -> u64| counters.values().map(of).sum::<u64>() as f64;
        let named = [
            ("reads", Counter, sum(|region| region.reads)),
            ("writes", Counter, sum(|region| region.writes)),
            ("store_files", Gauge, sum(|region| region.files)),
            ("store_files_mib", Gauge, sum(|region| region.files_mib)),
            ("memory_mib", Gauge, sum(|region| region.memory_mib)),
            ("regions", Gauge, counters.len() as f64),
        ];
        Ok(named.into_iter().map(|(name, kind, value)| (name.to_owned(), kind, value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(reads: u64, writes: u64, region: &str) -> Counters {
        let server = Server { host: "a".to_owned(), port: 1 };
        let region_counters = RegionCounters { reads, writes, ..RegionCounters::default() };
        Counters::from([((server, region.as_bytes().to_vec()), region_counters)])
    }

    #[test]
    fn one_row_more_or_less_fails_the_check() {
        let sent = Totals { puts: 10, gets: 3, scanned: 100, ..Totals::default() };
        let passed = |reads, writes| -> Vec<bool> {
            let checks = check(&counters(5, 5, "r"), &counters(reads, writes, "r"), &sent).unwrap();
            checks.into_iter().map(|check| check.passed).collect()
        };
        assert_eq!(passed(108, 15), [true, true]);
        assert_eq!(passed(107, 16), [false, false]);
    }

    #[test]
    fn counters_that_mean_nothing_are_not_compared() {
        let error = |after: &Counters, sent: Totals| check(&counters(0, 0, "r"), after, &sent).unwrap_err();
        assert!(error(&counters(0, 0, "other"), Totals::default()).contains("moved, split or merged"));
        assert!(error(&counters(0, 0, "r"), Totals { lost: 1, ..Totals::default() }).contains("1 lost"));
    }
}
