//! How long tables keep rows, as the hub asks the store.

use std::time::Duration;

use model::TableName;
use store::StoreError;

use crate::clock::system_now;
use crate::hub::Hub;

impl Hub {
    /// For how long the table keeps rows; `None` forever.
    pub fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.ttls.get(table, || self.store.ttl(table))
    }

    /// Drops the days that are older than the retention of their table, by the system clock. Returns the number of rows.
    /// Waits for the disk.
    pub fn drop_expired(&self) -> Result<u64, StoreError> {
        self.store.drop_expired(system_now())
    }
}
