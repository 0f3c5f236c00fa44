//! Changes of the durable state: the one way in which parts come and go, whoever makes them.
//!
//! The manifest has a lock of its own. It is taken before that of the state and never while that is held, so appends
//! wait for no edit. Whoever holds it alone replaces the version; so versions follow each other as edits do.
//!
//! Invariants:
//! 1. Readers see a change only after its edit is durable.
//! 2. The file of a dropped part is removed only after a mark stands behind the edit (manifest.rs, invariant 3) and
//!    when no version that a reader holds has the part. If the process ends before, the next open removes it.

use std::sync::Arc;

use store::StoreError;

use crate::core::{Core, State};
use crate::log::recover::Covered;
use crate::manifest::{Edit, PartInfo};
use crate::part::Part;

/// A change on its way into the manifest. Whatever it names is durable.
#[derive(Default)]
pub(crate) struct Change {
    /// What the log need not be read for any more, and the length of the series file; unchanged when `None`.
    pub(crate) covered: Option<(Covered, u64)>,
    /// Encoded definitions that the catalog has not got yet.
    pub(crate) definitions: Vec<u8>,
    pub(crate) added: Vec<PartInfo>,
    pub(crate) dropped: Vec<Arc<Part>>,
}

impl Core {
    /// Makes a change durable, with all definitions that are not yet, and shows it to readers. `finish` is called in
    /// the same moment, with the state locked. May be repeated after a failure that passes by itself.
    ///
    /// `false`, and nothing has happened, if somebody else has dropped one of the parts before.
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
        let saved_bytes = definitions.len();
        let definitions = [definitions, change.definitions.clone()].concat();
        let (covered, series_bytes) =
            change.covered.unwrap_or((manifest.state.covered, manifest.state.series_bytes));
        manifest.sync_name(self.disk.as_ref(), &self.layout)?;
        manifest.append(Edit {
            covered,
            series_bytes,
            definitions,
            added: change.added.clone(),
            dropped: change.dropped.iter().map(|part| part.info.id).collect(),
        })?;
        let added =
            change.added.iter().map(|info| Part::new(Arc::new(info.clone()), self.layout.part(info.id)));
        let next = Arc::new(version.with(added, &change.dropped));
        self.dropped_parts.lock().extend_from_slice(&change.dropped);
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.version, next);
        state.catalog.saved(saved_bytes);
        finish(&mut state);
        self.compact_work.notify_all();
        self.flush_work.notify_all(); // a flush may have waited for this
        drop(state);
        drop((version, before)); // not under the lock: it may be the last of many parts
        Ok(true)
    }

    /// Rewrites a manifest that has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<(), StoreError> {
        let bytes_max = self.options.manifest_rewrite_bytes;
        self.manifest.lock().rewrite_if_large(self.disk.as_ref(), &self.layout, bytes_max)
    }

    /// Removes the files of dropped parts that nobody can read any more; the others have to wait.
    pub(crate) fn remove_dropped(&self) -> Result<(), StoreError> {
        let unused = {
            if self.dropped_parts.lock().is_empty() {
                return Ok(());
            }
            // Held on, so that no part comes to the list whose edit has no mark yet.
            let mut manifest = self.manifest.lock();
            if !manifest.mark()? {
                return Ok(());
            }
            let mut dropped = self.dropped_parts.lock();
            // Whoever could make a copy has one already; at one it is ours.
            dropped.extract_if(.., |part| Arc::strong_count(part) == 1).collect::<Vec<_>>()
        };
        for part in unused {
            self.part_cache.forget(part.info.id);
            // A file that stays is removed by the next open.
            let _ = self.disk.remove(&part.path);
        }
        Ok(())
    }
}
