//! A cache of the retention of tables.
//!
//! Every message needs the retention of its table, and must not take a lock of the store for it. Only
//! [`Hub::set_ttl`](crate::Hub::set_ttl) changes a retention.

use std::collections::HashMap;
use std::time::Duration;

use model::TableName;
use parking_lot::RwLock;

/// For how long each table keeps rows; `None` forever.
#[derive(Debug, Default)]
pub(crate) struct Ttls(RwLock<HashMap<TableName, Option<Duration>>>);

impl Ttls {
    /// The retention of a table; `ask_store` gives it if it is not cached.
    pub(crate) fn get(
        &self,
        table: &TableName,
        ask_store: impl FnOnce() -> Option<Duration>,
    ) -> Option<Duration> {
        if let Some(ttl) = self.0.read().get(table) {
            return *ttl;
        }
        // Called under the lock, so an older answer cannot replace a newer one.
        let mut ttls = self.0.write();
        let ttl = ask_store();
        ttls.insert(table.clone(), ttl);
        ttl
    }

    /// Forgets a retention that has changed.
    pub(crate) fn forget(&self, table: &TableName) {
        self.0.write().remove(table);
    }
}
