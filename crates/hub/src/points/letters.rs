//! What was refused of a request, as dead letters.

use model::{Batch, SeriesKey};
use store::StoreError;

use super::limits::{LETTER_BYTES_MAX, LETTERS_PER_REQUEST_MAX};
use crate::audit::AUDIT_TAG;
use crate::caller::Caller;
use crate::dead_letter::{DEAD_LETTER_TABLE, DeadLetter};
use crate::hub::Hub;
use crate::metrics::Door;
use crate::registry::own_table;

/// The refused items of one request: the first ones, and the number of the others.
#[derive(Debug)]
pub(super) struct Letters {
    door: Door,
    kept: Vec<(String, Vec<u8>)>,
    more: usize,
}

impl Letters {
    pub(super) fn new(door: Door) -> Self {
        Self { door, kept: Vec::new(), more: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(super) fn add(&mut self, reason: &str, payload: &[u8]) {
        if self.kept.len() >= LETTERS_PER_REQUEST_MAX {
            self.more += 1;
            return;
        }
        let payload = &payload[..payload.len().min(LETTER_BYTES_MAX)];
        self.kept.push((reason.to_owned(), payload.to_vec()));
    }

    /// The letters as rows of the table of dead letters, in the series of the sender's login.
    pub(super) fn batch(&self, hub: &Hub, caller: &Caller, topic: &str) -> Result<Batch, StoreError> {
        let table = own_table(&hub.registry.namespace(caller.tenant()), DEAD_LETTER_TABLE);
        let series = hub.store.series(&SeriesKey::new(&table, &[(AUDIT_TAG, caller.login())])?)?;
        let mut batch = Batch::new();
        let door = self.door.name();
        for (reason, payload) in &self.kept {
            hub.add_letter(series, DeadLetter { door, topic, reason, payload }, &mut batch);
        }
        if self.more > 0 {
            let reason = format!("{} more items of the request were refused", self.more);
            hub.add_letter(series, DeadLetter { door, topic, reason: &reason, payload: b"" }, &mut batch);
        }
        Ok(batch)
    }
}
