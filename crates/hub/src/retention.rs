//! How long tables keep rows.
//!
//! Every message asks for the time of its table, so the answers are kept here and no message takes the store's lock for
//! it. They change only through [`Hub::set_ttl`].

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::RwLock;
use store::{Store, StoreError};

use crate::Hub;
use crate::bulk::BulkError;

/// What the store said, by table.
#[derive(Debug, Default)]
pub(crate) struct Ttls(RwLock<HashMap<String, Option<Duration>>>);

impl Hub {
    /// For how long the rows of a table are kept; for good when `None`.
    pub fn ttl(&self, table: &str) -> Option<Duration> {
        if let Some(ttl) = self.ttls.0.read().get(table) {
            return *ttl;
        }
        // Asked under the lock, so that no older answer replaces a newer one.
        let mut ttls = self.ttls.0.write();
        let ttl = self.store.ttl(table);
        ttls.insert(table.to_owned(), ttl);
        ttl
    }

    /// Says for how long the rows of a table are kept; for good when `ttl` is `None`. Waits for the disk. A table that
    /// there is not yet is refused unless it may be made.
    pub fn set_ttl(&self, table: &str, ttl: Option<Duration>, may_create: bool) -> Result<(), BulkError> {
        set_ttl(self.store.as_ref(), table, ttl, may_create)?;
        self.ttls.0.write().remove(table);
        Ok(())
    }

    /// Drops days of rows that are older than their tables keep them by the system clock, and returns how many rows
    /// that were. Waits for the disk.
    pub fn drop_expired(&self) -> Result<u64, StoreError> {
        self.store.drop_expired(crate::clock::system_now())
    }
}

/// [`Hub::set_ttl`] on a store that no hub has: a misspelt name must not become a table of its own.
pub fn set_ttl(
    store: &dyn Store,
    table: &str,
    ttl: Option<Duration>,
    may_create: bool,
) -> Result<(), BulkError> {
    if !may_create && !store.tables()?.iter().any(|status| status.table == table) {
        return Err(BulkError::NoTable(table.to_owned()));
    }
    Ok(store.set_ttl(table, ttl)?)
}
