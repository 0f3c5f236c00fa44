//! The progress of the key-value engine, for tasks that wait for it.

use kv::{Progress, ProgressWatcher};
use tokio::sync::watch;

/// Brings the progress of the key-value store to tasks that wait for it.
#[derive(Debug, Default)]
pub(crate) struct KvProgress(pub(crate) watch::Sender<Progress>);

impl ProgressWatcher for KvProgress {
    fn progress(&self, progress: Progress) {
        if self.0.receiver_count() > 0 {
            self.0.send_replace(progress);
        }
    }
}
