//! The audit table: one row for each administrative act of a caller.
//!
//! A row has the tag `login` and the keys `role`, `act` and `subject`. The hub appends it after the act (before a backup, which
//! then holds it) and answers when the row is durable. Commands that open the data directory themselves, and logins, leave
//! no row.

use std::time::{Duration, Instant};

use model::{Batch, SeriesKey, ValueRef};
use store::{Durability, StoreError};

use crate::blocking_append::{retry, wait_durable};
use crate::caller::Caller;
use crate::hub::Hub;
use crate::namespace::own_table;

/// The table of administrative acts.
pub const AUDIT_TABLE: &str = "audit";

/// The tag of its rows.
pub(crate) const AUDIT_TAG: &str = "login";

/// The keys of its rows.
pub(crate) const AUDIT_KEYS: [&str; 3] = ["role", "act", "subject"];

/// How long an act waits for a busy store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl Hub {
    /// Appends a row about an act that the caller has done, and waits until it is durable: call it on a thread that may block.
    /// The act stays done if the store takes no rows now; then the server's log names it.
    pub(crate) fn audit(&self, caller: &Caller, act: &'static str, subject: &str) {
        let login = caller.login();
        if let Err(error) = self.append_audit(caller, act, subject) {
            tracing::warn!(login, act, subject, %error, "an administrative act has no row in the table audit");
        }
    }

    fn append_audit(&self, caller: &Caller, act: &'static str, subject: &str) -> Result<(), StoreError> {
        let table = own_table(&self.registry.namespace(caller.tenant()), AUDIT_TABLE);
        let (began, key) = (Instant::now(), SeriesKey::new(&table, &[(AUDIT_TAG, caller.login())])?);
        let series = retry(began, BUSY_TIMEOUT, || self.store.series(&key))?;
        let mut batch = Batch::new();
        let mut row = batch.builder();
        for (key, value) in AUDIT_KEYS.into_iter().zip([caller.role().name(), act, subject]) {
            row.field(key, ValueRef::String(value));
        }
        // Receipt times never repeat, so no row overwrites another one.
        row.row(series, self.clock.next());
        row.finish();
        let sequence = retry(began, BUSY_TIMEOUT, || self.ingest(&batch, Durability::Fsync))?;
        wait_durable(&*self.store, sequence)
    }
}
