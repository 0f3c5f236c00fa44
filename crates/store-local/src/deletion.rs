//! Deletion that a caller asks for: keys of a table.
//!
//! The drop is a definition in the log, so recovery meets it in the order in which it happened among new columns and
//! rows. It is durable with the edit of the manifest that follows at once. Files keep the values until a merge rewrites
//! them without the columns of dropped keys (part/schema.rs).

use model::TableName;
use store::{Durability, StoreError};

use crate::change::Change;
use crate::core::Core;
use crate::entry::Entry;

/// Most bytes of the definition.
const ENTRY_BYTES_MAX: usize = 16;

impl Core {
    /// Drops a key of a table; `false` if there is none of this name.
    pub(crate) fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        {
            let mut guard = self.state.lock();
            guard.check_writable()?;
            let state = &mut *guard;
            let Some(table) = state.catalog.table(table) else { return Ok(false) };
            self.check_room(state, ENTRY_BYTES_MAX)?;
            let pending = &mut state.pending;
            let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
            if !state.catalog.drop_key(table, key, log)? {
                return Ok(false);
            }
            let was_empty = state.pending.wanted.is_none();
            self.request_commit(state, Durability::Memory, was_empty);
        }
        let changed = self.change(&Change::default(), |_| {});
        changed.map(|_| true).map_err(|error| self.sealed_by(error))
    }
}
