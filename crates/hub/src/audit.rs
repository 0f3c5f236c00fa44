//! The audit table: one row for each administrative act of a caller.
//!
//! A row has the tag `login` and the keys `role`, `act` and `subject`. The hub appends it after the act. Commands that open
//! the data directory themselves, and logins, leave no row.

use model::{Batch, SeriesKey, ValueRef};
use store::{Durability, StoreError};

use crate::caller::Caller;
use crate::hub::Hub;

/// The table of administrative acts.
pub const AUDIT_TABLE: &str = "audit";

/// The tag of its rows.
pub(crate) const AUDIT_TAG: &str = "login";

/// The keys of its rows.
pub(crate) const AUDIT_KEYS: [&str; 3] = ["role", "act", "subject"];

impl Hub {
    /// Appends a row about an act that the caller has done. The act stays done if the store takes no rows now; then the log has
    /// it.
    pub(crate) fn audit(&self, caller: &Caller, act: &'static str, subject: &str) {
        let login = caller.login();
        if let Err(error) = self.append_audit(caller, act, subject) {
            tracing::warn!(login, act, subject, %error, "an administrative act has no row in the table audit");
        }
    }

    fn append_audit(&self, caller: &Caller, act: &'static str, subject: &str) -> Result<(), StoreError> {
        let series = self.store.series(&SeriesKey::new(AUDIT_TABLE, &[(AUDIT_TAG, caller.login())])?)?;
        let mut batch = Batch::new();
        let mut row = batch.builder();
        for (key, value) in AUDIT_KEYS.into_iter().zip([caller.role().name(), act, subject]) {
            row.field(key, ValueRef::String(value));
        }
        // Receipt times never repeat, so no row overwrites another one.
        row.row(series, self.clock.next());
        row.finish();
        self.ingest(&batch, Durability::Fsync).map(drop)
    }
}
