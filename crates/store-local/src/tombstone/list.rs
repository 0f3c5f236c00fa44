//! The tombstones of a store.

use std::sync::Arc;

use model::limits::DELETIONS_PER_TABLE_MAX;

use super::{Hidden, Tombstone};

/// The number of tombstones of a table from which on the compactor rewrites parts for them.
const PRESSING: usize = DELETIONS_PER_TABLE_MAX / 2;

/// All tombstones that still hide something, and those among them that the manifest does not have yet.
#[derive(Default)]
pub(crate) struct Tombstones {
    /// By table number, by sequence. Readers share the lists. Tables without tombstones may be missing.
    tables: Vec<Hidden>,
    unsaved: Vec<Arc<Tombstone>>,
    /// The sequence up to which the parts cover the log. The manifest has the tombstones up to it.
    covered: u64,
}

impl Tombstones {
    /// Those of a table.
    pub(crate) fn of(&self, table: u32) -> &Hidden {
        self.tables.get(table as usize).unwrap_or(&None)
    }

    /// All of them, table by table.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Tombstone>> {
        self.tables.iter().flatten().flat_map(|of_table| of_table.iter())
    }

    /// The number of tombstones of a table.
    pub(crate) fn count(&self, table: u32) -> usize {
        self.of(table).as_ref().map_or(0, |of_table| of_table.len())
    }

    /// Whether the tombstones of a table reach the number from which on the compactor rewrites parts for them.
    pub(crate) fn are_pressing(&self, table: u32) -> bool {
        self.count(table) >= PRESSING
    }

    /// The number of tables whose tombstones reach that number ([`are_pressing`](Self::are_pressing)).
    pub(crate) fn pressing(&self) -> usize {
        (0..self.tables.len() as u32).filter(|table| self.are_pressing(*table)).count()
    }

    /// Those that merges may apply, because the manifest has them.
    pub(crate) fn covered(&self) -> impl Iterator<Item = &Arc<Tombstone>> {
        self.all().filter(|tombstone| tombstone.sequence <= self.covered)
    }

    /// The sequence up to which the manifest has the tombstones.
    pub(crate) fn covered_sequence(&self) -> u64 {
        self.covered
    }

    /// Adds a tombstone that the manifest has.
    pub(crate) fn add_saved(&mut self, tombstone: Arc<Tombstone>) {
        let table = tombstone.table as usize;
        if self.tables.len() <= table {
            self.tables.resize(table + 1, None);
        }
        let before = self.tables[table].as_deref().unwrap_or_default();
        let mut all: Vec<Arc<Tombstone>> = before.iter().cloned().chain([tombstone]).collect();
        all.sort_by_key(|tombstone| tombstone.sequence);
        self.tables[table] = Some(all.into());
    }

    /// Adds a tombstone for the next manifest edit. One that is known changes nothing, because recovery finds those of the
    /// manifest in the log again.
    pub(crate) fn add(&mut self, tombstone: Tombstone) {
        let of_table = self.of(tombstone.table).as_deref().unwrap_or_default();
        if of_table.iter().any(|known| known.sequence == tombstone.sequence) {
            return;
        }
        let tombstone = Arc::new(tombstone);
        self.unsaved.push(tombstone.clone());
        self.add_saved(tombstone);
    }

    /// Those that the next manifest edit must have if its parts cover the log up to `covered`.
    pub(crate) fn unsaved(&self, covered: u64) -> impl Iterator<Item = &Arc<Tombstone>> {
        self.unsaved.iter().filter(move |tombstone| tombstone.sequence <= covered)
    }

    /// Whether the manifest does not have all of them yet.
    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Notes that the manifest has the tombstones up to `covered`, and drops those that hide nothing any more.
    pub(crate) fn saved(&mut self, covered: u64, ended: &[Arc<Tombstone>]) {
        self.covered = covered;
        self.unsaved.retain(|tombstone| tombstone.sequence > covered);
        // One whose series end stays until the manifest has their end.
        for tombstone in ended.iter().filter(|of| !of.ends_series || of.sequence <= covered) {
            self.unsaved.retain(|unsaved| unsaved.sequence != tombstone.sequence);
            let of_table = &mut self.tables[tombstone.table as usize];
            let left =
                of_table.iter().flat_map(|all| all.iter()).filter(|of| of.sequence != tombstone.sequence);
            let left: Vec<Arc<Tombstone>> = left.cloned().collect();
            *of_table = (!left.is_empty()).then(|| left.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tombstone;
    use super::*;

    #[test]
    fn a_tombstone_is_known_once_and_saved_when_parts_cover_it() {
        let mut all = Tombstones::default();
        for sequence in [5, 3, 5] {
            all.add(tombstone(sequence, &[1], (0, 9), None));
        }
        assert_eq!((all.count(0), all.count(7)), (2, 0));
        let sequences: Vec<u64> = all.all().map(|of| of.sequence).collect();
        assert_eq!(sequences, [3, 5]);
        let unsaved =
            |all: &Tombstones, covered| all.unsaved(covered).map(|of| of.sequence).collect::<Vec<_>>();
        assert_eq!(unsaved(&all, 4), [3]);
        all.saved(4, &[]);
        assert_eq!((unsaved(&all, 9), all.count(0)), (vec![5], 2));
        assert_eq!((all.covered().count(), all.covered_sequence()), (1, 4));
        let ended: Vec<Arc<Tombstone>> = all.all().cloned().collect();
        all.saved(4, &ended);
        assert_eq!((unsaved(&all, 9), all.count(0)), (vec![], 0));
        assert!(all.of(0).is_none());
    }
}
