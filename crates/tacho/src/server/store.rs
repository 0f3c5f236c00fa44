//! The embedded store of a server: the only place that names a concrete store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hub::{Hub, Metrics, Progress, ProgressWatcher};
use store::{MemoryStore, Store};

use crate::config::Config;

/// Opens the store of a data directory and tells what recovery found.
pub(super) fn open(_config: &Config, _metrics: &Arc<Metrics>) -> anyhow::Result<Arc<dyn Store>> {
    tracing::warn!("the store is the in-memory reference: nothing outlives the process");
    Ok(Arc::new(MemoryStore::new()))
}

/// Logs once when the store stops taking writes.
pub(super) fn report_when_sealed(hub: &Arc<Hub>) {
    hub.watch(Arc::new(SealWatcher::default()));
}

#[derive(Debug, Default)]
struct SealWatcher {
    told: AtomicBool,
}

impl ProgressWatcher for SealWatcher {
    fn progress(&self, progress: Progress) {
        if progress.sealed && !self.told.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the store takes no more writes since one failed (/readyz has the cause); reads go on. Repair the cause and restart"
            );
        }
    }
}
