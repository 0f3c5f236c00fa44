//! Appends a row to the audit table for each administrative act of a caller.

use std::time::{Duration, Instant};

use model::{Batch, SeriesKey, ValueRef};
use store::{Durability, StoreError};

use crate::audit::{AUDIT_KEYS, AUDIT_TAG};
use crate::blocking_append::{retry, wait_durable};
use crate::caller::Caller;
use crate::hub::Hub;
use crate::registry::{AUDIT_TABLE, EntityId, own_table};

/// How long an act waits for a busy store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl Hub {
    /// Appends a row about an act that the caller has done, and waits until it is durable: call it on a thread that may block.
    /// The act stays done if the store does not accept rows now; then the server's log names it.
    pub(crate) fn audit(&self, caller: &Caller, act: &'static str, subject: &str) {
        self.audit_act(caller, act, subject, None);
    }

    /// Like [`audit`](Self::audit), for an act about an entity.
    pub(crate) fn audit_of(&self, caller: &Caller, act: &'static str, subject: &str, entity: EntityId) {
        self.audit_act(caller, act, subject, Some(entity));
    }

    fn audit_act(&self, caller: &Caller, act: &'static str, subject: &str, entity: Option<EntityId>) {
        if let Err(error) = self.append_audit(caller, act, subject, entity) {
            warn_of_missing_row(caller, act, subject, &error);
        }
    }

    /// Like [`audit`](Self::audit), for a task.
    pub(crate) async fn audit_and_wait(&self, caller: &Caller, act: &'static str, subject: &str) {
        let appended = async {
            let batch = self.audit_batch(caller, act, subject, None)?;
            self.ingest_and_wait(&batch, Durability::Fsync, BUSY_TIMEOUT).await.map(drop)
        };
        if let Err(error) = appended.await {
            warn_of_missing_row(caller, act, subject, &error);
        }
    }

    fn append_audit(
        &self,
        caller: &Caller,
        act: &'static str,
        subject: &str,
        entity: Option<EntityId>,
    ) -> Result<(), StoreError> {
        let began = Instant::now();
        let batch = retry(began, BUSY_TIMEOUT, || self.audit_batch(caller, act, subject, entity))?;
        let ticket = retry(began, BUSY_TIMEOUT, || self.ingest(&batch, Durability::Fsync))?;
        wait_durable(&*self.store, ticket)
    }

    /// The row about an act.
    fn audit_batch(
        &self,
        caller: &Caller,
        act: &'static str,
        subject: &str,
        entity: Option<EntityId>,
    ) -> Result<Batch, StoreError> {
        let table = own_table(&self.registry.namespace(caller.tenant()), AUDIT_TABLE);
        let series = self.store.series(&SeriesKey::new(&table, &[(AUDIT_TAG, caller.login())])?)?;
        let mut batch = Batch::new();
        let mut row = batch.builder();
        let entity = entity.map(|entity| (entity.kind.name(), entity.id.to_string()));
        let (kind, id) = entity.as_ref().map(|(kind, id)| (*kind, id.as_str())).unzip();
        let values = [Some(caller.role().name()), Some(act), Some(subject), kind, id];
        for (key, value) in AUDIT_KEYS.into_iter().zip(values) {
            if let Some(value) = value {
                row.field(key, ValueRef::String(value));
            }
        }
        // Receipt times never repeat, so no row overwrites another one.
        row.row(series, self.clock.next());
        row.finish();
        Ok(batch)
    }
}

fn warn_of_missing_row(caller: &Caller, act: &str, subject: &str, error: &StoreError) {
    let login = caller.login();
    tracing::warn!(login, act, subject, %error, "an administrative act has no row in the table audit");
}
