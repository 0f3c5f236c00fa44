//! Commits to the key-value store, and waits for their durability.

use std::time::Duration;

use kv::{Blame, KvError, Progress, Sequence, WriteBatch};
use tokio::sync::watch;

use crate::Hub;

impl Hub {
    /// Commits a batch to the key-value store and waits until it is durable. Waits for a busy store for at most `busy_timeout`.
    ///
    /// # Errors
    /// The errors of [`kv::KeyValueStore::commit`], and [`KvError::Sealed`] when the batch can never become durable.
    pub async fn kv_commit_and_wait(
        &self,
        batch: &WriteBatch,
        busy_timeout: Duration,
    ) -> Result<Sequence, KvError> {
        let mut progress = self.kv_progress.0.subscribe();
        let deadline = tokio::time::Instant::now() + busy_timeout;
        let sequence = loop {
            progress.mark_unchanged();
            match self.kv.commit(batch) {
                Err(busy) if busy.blame() == Blame::Busy => {
                    if tokio::time::timeout_at(deadline, progress.changed()).await.is_err() {
                        return Err(busy);
                    }
                }
                other => break other?,
            }
        };
        self.durable(sequence, &mut progress).await?;
        Ok(sequence)
    }

    /// Waits until the batches of keys up to `sequence` are durable.
    ///
    /// # Errors
    /// [`KvError::Sealed`] when they can never become durable.
    pub async fn kv_durable(&self, sequence: Sequence) -> Result<(), KvError> {
        self.durable(sequence, &mut self.kv_progress.0.subscribe()).await
    }

    async fn durable(
        &self,
        sequence: Sequence,
        progress: &mut watch::Receiver<Progress>,
    ) -> Result<(), KvError> {
        loop {
            progress.mark_unchanged();
            let now = self.kv.progress();
            if now.durable >= sequence {
                return Ok(());
            }
            if now.sealed {
                let cause = self.kv.status().sealed.unwrap_or_else(|| "a write failed".into());
                return Err(KvError::Sealed { cause });
            }
            // The sender lives as long as the hub; an error means that the hub has closed.
            progress.changed().await.map_err(|_| KvError::Closed)?;
        }
    }
}
