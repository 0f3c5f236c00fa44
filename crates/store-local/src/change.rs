//! Changes of the durable state. The flusher, the compactor and retention add and drop parts only through this file.
//!
//! The manifest has a lock of its own. A thread takes it before the lock of the state and never while it holds that one,
//! so no append waits for an edit. Only the thread that holds it replaces the version, so versions follow each other in
//! the order of the edits.
//!
//! Invariants:
//! 1. Readers see a change only after its edit is durable.
//! 2. The store removes the file of a dropped part only when a mark follows the edit (manifest.rs, invariant 3) and no
//!    reader holds a version with the part. If the process ends earlier, the next open removes the file.

use std::collections::HashSet;
use std::sync::Arc;

use store::{Sequence, StoreError};

use crate::core::{Core, State};
use crate::entry::{Entry, series_set};
use crate::log::recover::Covered;
use crate::manifest::Edit;
use crate::part::{Part, PartInfo};
use crate::tombstone::Tombstone;
use crate::version::Version;

/// A change that is about to enter the manifest. Everything that it names is durable.
#[derive(Default)]
pub(crate) struct Change {
    /// The part of the log that a recovery need not read any more, and the length of the series file; `None` when both
    /// stay as they are.
    pub(crate) covered: Option<(Covered, u64)>,
    /// Encoded definitions that the catalog does not have yet.
    pub(crate) definitions: Vec<u8>,
    pub(crate) added: Vec<PartInfo>,
    pub(crate) dropped: Vec<Arc<Part>>,
}

impl Core {
    /// Makes a change durable, together with all definitions that are not durable yet, and shows it to readers. Calls
    /// `finish` at the same moment, with the state locked. The caller may retry after a transient failure.
    ///
    /// `false` when another thread has already dropped one of the parts. Then nothing has changed.
    pub(crate) fn change(
        &self,
        change: &Change,
        finish: impl FnOnce(&mut State),
    ) -> Result<bool, StoreError> {
        let mut manifest = self.manifest.lock();
        if !change.dropped.iter().all(|part| manifest.parts.contains_key(&part.info.id)) {
            return Ok(false);
        }
        let (version, definitions) = {
            let state = self.state.lock();
            (state.version.clone(), state.catalog.unsaved().to_vec())
        };
        let dropped =
            [change.dropped.clone(), self.parts_of_dropped_tables(&version, &change.dropped)].concat();
        let added =
            change.added.iter().map(|info| Part::new(Arc::new(info.clone()), self.layout.part(info.id)));
        let next = Arc::new(version.with(added, &dropped));
        let ended = self.ended(&next, change.covered.is_some());
        let saved_bytes = definitions.len();
        let mut definitions = [definitions, change.definitions.clone()].concat();
        let (covered, series_bytes) =
            change.covered.unwrap_or((manifest.state.covered, manifest.state.series_bytes));
        let deletions = self.unsaved_deletions(covered.sequence, &ended, &mut definitions);
        let saved: HashSet<u64> = manifest.state.deletions.iter().map(|deletion| deletion.sequence).collect();
        let is_saved = |sequence: &u64| saved.contains(sequence);
        manifest.sync_name(self.disk.as_ref(), &self.layout)?;
        manifest.append(Edit {
            covered,
            series_bytes,
            definitions,
            added: change.added.clone(),
            dropped: dropped.iter().map(|part| part.info.id).collect(),
            deletions,
            ended: ended.iter().map(|tombstone| tombstone.sequence).filter(is_saved).collect(),
        })?;
        self.dropped_parts.lock().extend(dropped);
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.version, next);
        state.catalog.saved(saved_bytes);
        state.tombstones.saved(covered.sequence, &ended);
        finish(&mut state);
        self.compact_work.notify_all();
        self.flush_work.notify_all(); // a flush may wait for this change
        drop(state);
        drop((version, before)); // not under the lock: this may free many parts
        Ok(true)
    }

    /// The tombstones that hide nothing in the parts of a version and in memory. With `flushed` the chunks that are being
    /// flushed do not count, because the version has their rows.
    fn ended(&self, version: &Version, flushed: bool) -> Vec<Arc<Tombstone>> {
        let all: Vec<Arc<Tombstone>> = self.state.lock().tombstones.all().cloned().collect();
        let in_parts = |of: &Arc<Tombstone>| {
            let mut parts = version.parts(of.table);
            parts.any(|part| part.info.applied < of.sequence && of.touches(&part.info.extent()))
        };
        let mut ended: Vec<Arc<Tombstone>> = all.into_iter().filter(|of| !in_parts(of)).collect();
        if !ended.is_empty() {
            let state = self.state.lock();
            ended.retain(|of| !state.tables[of.table as usize].may_have_hidden(of, flushed));
        }
        ended
    }

    /// The wide parts of dropped tables in a version, without those of a list.
    fn parts_of_dropped_tables(&self, version: &Version, known: &[Arc<Part>]) -> Vec<Arc<Part>> {
        let state = self.state.lock();
        let tables = (0..).zip(&state.catalog.tables).filter(|(_, table)| table.dropped);
        let parts = tables.flat_map(|(number, _)| version.wide(number));
        let is_new = |part: &&Arc<Part>| known.iter().all(|known| known.info.id != part.info.id);
        parts.filter(is_new).cloned().collect()
    }

    /// The tombstones for an edit whose parts cover the log up to `covered`; adds the series that end with them to the
    /// definitions. The log keeps the later ones.
    fn unsaved_deletions(
        &self,
        covered: Sequence,
        ended: &[Arc<Tombstone>],
        definitions: &mut Vec<u8>,
    ) -> Vec<Arc<Tombstone>> {
        let state = self.state.lock();
        for Tombstone { table, series, .. } in
            state.tombstones.unsaved(covered).map(AsRef::as_ref).filter(|of| of.ends_series)
        {
            Entry::DroppedSeries { table: *table, series: &series_set::encode(series) }.put(definitions);
        }
        let is_ended = |of: &Arc<Tombstone>| ended.iter().any(|ended| ended.sequence == of.sequence);
        state.tombstones.unsaved(covered).filter(|of| !is_ended(of)).cloned().collect()
    }

    /// Rewrites the manifest if it has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<(), StoreError> {
        let bytes_max = self.options.manifest_rewrite_bytes;
        self.manifest.lock().rewrite_if_large(self.disk.as_ref(), &self.layout, bytes_max)
    }

    /// Removes the files of the dropped parts that no reader uses any more. The other files must wait.
    pub(crate) fn remove_dropped(&self) -> Result<(), StoreError> {
        let unused = {
            if self.dropped_parts.lock().is_empty() {
                return Ok(());
            }
            // Keeps the lock, so that no part without a mark after its edit enters the list.
            let mut manifest = self.manifest.lock();
            if !manifest.mark()? {
                return Ok(());
            }
            let mut dropped = self.dropped_parts.lock();
            // A thread that could clone the `Arc` holds a clone already. If the count is one, only the list has the part.
            dropped.extract_if(.., |part| Arc::strong_count(part) == 1).collect::<Vec<_>>()
        };
        for part in unused {
            self.part_cache.forget(part.info.id);
            // If this fails, the next open removes the file.
            let _ = self.disk.remove(&part.path);
        }
        Ok(())
    }
}
