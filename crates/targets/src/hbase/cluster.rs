//! A cluster: its registry, its master, and a table's regions, which all connections share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::cell::Cells;
use super::connection::{CallError, Connection, Server};
use super::messages::{
    ClusterStatus, GetClusterStatusRequest, GetClusterStatusResponse, OPTION_HBASE_VERSION,
    OPTION_SERVERS_NAME, RegionSpecifier, Scan, ScanRequest,
};
use super::regions::RegionMap;
use super::registry::Registry;
use super::scanner::{RegionScan, ScanStep};

/// The only region of `hbase:meta`.
const META_REGION: &[u8] = b"hbase:meta,,1";
/// Rows of `hbase:meta` per answer.
const META_CACHING: u32 = 1_000;
/// The pause between two looks at a table whose regions are in motion.
const PAUSE: Duration = Duration::from_millis(100);

/// A cluster with one table.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Where to ask for its servers.
    pub(super) registry: Registry,
    pub(super) table: String,
    /// No answer may take longer.
    pub(super) silence: Duration,
    /// The regions, as far as they are known. The lock is held while they are looked up, so that one connection looks up
    /// and the others wait.
    regions: Mutex<Option<Arc<RegionMap>>>,
}

impl Cluster {
    /// Nothing is opened yet.
    pub(super) fn new(registry: Registry, table: String, silence: Duration) -> Self {
        Self { registry, table, silence, regions: Mutex::new(None) }
    }

    /// The regions of the table, looked up once.
    pub(super) fn regions(&self) -> Result<Arc<RegionMap>, String> {
        let mut regions = self.regions.lock();
        match &*regions {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::clone(regions.insert(self.look_up()?))),
        }
    }

    /// The regions after a call at `known` failed: those that another connection has looked up since, or new ones.
    pub(super) fn relocate(&self, known: &Arc<RegionMap>) -> Result<Arc<RegionMap>, String> {
        let mut regions = self.regions.lock();
        match &*regions {
            Some(newer) if !Arc::ptr_eq(newer, known) => Ok(Arc::clone(newer)),
            _ => Ok(Arc::clone(regions.insert(self.look_up()?))),
        }
    }

    /// The regions after a server said where a region is now. It avoids a look at `hbase:meta`.
    pub(super) fn moved(&self, known: &Arc<RegionMap>, region: &[u8], server: &Server) -> Arc<RegionMap> {
        let mut regions = self.regions.lock();
        let newest = regions.as_ref().unwrap_or(known);
        let moved = newest.moved(region, server).map_or_else(|| Arc::clone(newest), Arc::new);
        Arc::clone(regions.insert(moved))
    }

    /// Forgets the regions, because the table is made again.
    pub(super) fn forget(&self) {
        *self.regions.lock() = None;
    }

    /// The version of HBase and the region servers.
    pub(super) fn status(&self) -> Result<ClusterStatus, String> {
        let request = GetClusterStatusRequest { options: vec![OPTION_HBASE_VERSION, OPTION_SERVERS_NAME] };
        let answer: GetClusterStatusResponse = self.ask_master("GetClusterStatus", &request)?;
        Ok(answer.cluster_status)
    }

    /// A connection to the active master.
    pub(super) fn master(&self) -> Result<Connection, String> {
        let master = self.registry.master(self.silence)?;
        Connection::open(&master, "MasterService", self.silence).map_err(|error| error.to_string())
    }

    fn ask_master<M: prost::Message + Default>(
        &self,
        method: &str,
        message: &impl prost::Message,
    ) -> Result<M, String> {
        self.master()?.call(method, message).map_err(|error| format!("the master answers {method}: {error}"))
    }

    /// Looks the regions up until all have a server.
    fn look_up(&self) -> Result<Arc<RegionMap>, String> {
        let began = Instant::now();
        loop {
            let found = self.look_once();
            match found {
                Ok(regions) => return Ok(Arc::new(regions)),
                Err(why) if began.elapsed() >= self.silence => return Err(why),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn look_once(&self) -> Result<RegionMap, String> {
        let server = self.registry.meta(self.silence)?;
        let block = self.meta_rows(&server).map_err(|error| format!("hbase:meta at {server}: {error}"))?;
        let cells = Cells::new(&block).collect::<Result<Vec<_>, _>>()?;
        RegionMap::of_meta(cells.into_iter()).map_err(|why| format!("table {}: {why}", self.table))
    }

    /// The cells of all rows of the table in `hbase:meta`.
    fn meta_rows(&self, server: &Server) -> Result<Vec<u8>, CallError> {
        let mut connection = Connection::open(server, "ClientService", self.silence)?;
        let mut scan = RegionScan::new(META_CACHING);
        let mut block = Vec::new();
        // The order of hbase:meta is that of table, first row, time. A blank sorts after the comma that ends the name, for
        // HBase compares the names alone; these are the bounds of its own client.
        let open = ScanRequest {
            region: Some(RegionSpecifier::named(META_REGION)),
            scan: Some(Scan {
                start_row: Some(format!("{},,", self.table).into_bytes()),
                stop_row: Some(format!("{} ,,", self.table).into_bytes()),
                caching: Some(META_CACHING),
                ..Scan::default()
            }),
            ..ScanRequest::default()
        };
        while scan.step(&mut connection, &open, &mut block)? == ScanStep::More {}
        Ok(block)
    }
}
