//! The immutable parts at one moment, shared by readers until the last of them lets go.

use std::sync::Arc;

use crate::part::Part;

/// All parts of the store.
#[derive(Debug, Default, Clone)]
pub(crate) struct Version {
    /// By table number; within a table by sequence, oldest first.
    tables: Vec<Vec<Arc<Part>>>,
}

impl Version {
    /// The parts of one table, oldest first.
    pub(crate) fn parts(&self, table: u32) -> &[Arc<Part>] {
        self.tables.get(table as usize).map_or(&[], Vec::as_slice)
    }

    /// Number and bytes of all parts.
    pub(crate) fn size(&self) -> (u64, u64) {
        let parts = self.tables.iter().flatten();
        parts.fold((0, 0), |(count, bytes), part| (count + 1, bytes + part.info.bytes))
    }

    /// This version and some more parts.
    pub(crate) fn with(&self, added: impl IntoIterator<Item = Part>) -> Self {
        let mut next = self.clone();
        for part in added {
            let table = part.info.table as usize;
            if next.tables.len() <= table {
                next.tables.resize(table + 1, Vec::new());
            }
            next.tables[table].push(Arc::new(part));
        }
        for parts in &mut next.tables {
            parts.sort_by_key(|part| (part.info.sequence, part.info.id));
        }
        next
    }
}
