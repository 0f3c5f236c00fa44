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

use std::sync::Arc;

use store::StoreError;

use crate::core::{Core, State};
use crate::log::recover::Covered;
use crate::manifest::Edit;
use crate::part::{Part, PartInfo};

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
        self.flush_work.notify_all(); // a flush may wait for this change
        drop(state);
        drop((version, before)); // not under the lock: this may free many parts
        Ok(true)
    }

    /// Rewrites the manifest if it has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<(), StoreError> {
        let bytes_max = self.options.manifest_rewrite_bytes;
        self.manifest.lock().rewrite_if_large(self.disk.as_ref(), &self.layout, bytes_max)
    }

    /// Removes the files of the dropped parts that no reader uses any more. The other files have to wait.
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
