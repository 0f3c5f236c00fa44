//! The pool of a database, which connects only to addresses that are allowed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use clients::outgoing::AllowedTargets;
use parking_lot::Mutex;
use virtual_sensors::{DatabaseKind, DatabaseOptions};

use super::limits::LOOKUP_INTERVAL;
use super::{mysql, postgresql};
use crate::addresses::addresses;

/// The client of a kind of database.
#[derive(Debug, Clone)]
pub(super) enum Pool {
    MySql(mysql_async::Pool),
    PostgreSql(deadpool_postgres::Pool),
}

/// The pool of a database. It is made when the name of the server was looked up, and again when the name has other addresses.
#[derive(Debug)]
pub(super) struct CheckedPool {
    options: DatabaseOptions,
    targets: Arc<AllowedTargets>,
    now: Mutex<Option<OfAddresses>>,
}

/// A pool that connects to these addresses.
#[derive(Debug)]
struct OfAddresses {
    pool: Pool,
    addresses: Vec<IpAddr>,
    looked_up: Instant,
}

impl CheckedPool {
    /// Does not connect, and looks nothing up.
    pub(super) fn new(options: &DatabaseOptions, targets: Arc<AllowedTargets>) -> Self {
        Self { options: options.clone(), targets, now: Mutex::default() }
    }

    /// The pool.
    ///
    /// # Errors
    /// The server has no address that is allowed, or the options are not those of a pool.
    pub(super) async fn get(&self) -> Result<Pool, String> {
        if let Some(now) = &*self.now.lock()
            && now.looked_up.elapsed() < LOOKUP_INTERVAL
        {
            return Ok(now.pool.clone());
        }
        let address = &self.options.address;
        let found = addresses(&self.targets, &address.host, address.port).await?;
        let mut found: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
        found.dedup();
        let mut now = self.now.lock();
        if let Some(now) = &mut *now
            && now.addresses.iter().all(|address| found.contains(address))
        {
            now.looked_up = Instant::now();
            return Ok(now.pool.clone());
        }
        let pool = self.make(&found)?;
        *now = Some(OfAddresses { pool: pool.clone(), addresses: found, looked_up: Instant::now() });
        Ok(pool)
    }

    fn make(&self, addresses: &[IpAddr]) -> Result<Pool, String> {
        let pool = match self.options.address.kind {
            DatabaseKind::MySql => mysql::pool(&self.options, addresses).map(Pool::MySql),
            DatabaseKind::PostgreSql => postgresql::pool(&self.options, addresses).map(Pool::PostgreSql),
        };
        pool.ok_or_else(|| format!("a pool cannot have {} connections", self.options.connections_max))
    }
}
