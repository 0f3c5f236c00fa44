//! Appends and commits from threads that may block.

use std::time::{Duration, Instant};

use kv::{KeyValueStore, KvError};
use store::{Blame, Durability, Outcome, Store, StoreError, Ticket};

/// Time between two looks at a store that is busy, or whose rows are not durable yet.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// Attempts an operation until the store is not busy, until `busy_timeout` after `began`.
pub(crate) fn retry<T>(
    began: Instant,
    busy_timeout: Duration,
    mut attempt: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        match attempt() {
            Err(error) if error.blame() == Blame::Busy && began.elapsed() < busy_timeout => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Waits until the rows of a ticket are on the disk.
///
/// # Errors
/// The store lost the rows, or it was sealed before.
pub fn wait_durable(store: &dyn Store, ticket: Ticket) -> Result<(), StoreError> {
    loop {
        match store.outcome(ticket, Durability::Fsync) {
            Outcome::Kept => return Ok(()),
            Outcome::Failed(error) => return Err(error),
            Outcome::Pending => std::thread::sleep(PAUSE),
        }
    }
}

/// Waits until the batches of keys up to `sequence` are on the disk.
///
/// # Errors
/// The key-value store was sealed before.
pub fn wait_durable_keys(kv: &dyn KeyValueStore, sequence: kv::Sequence) -> Result<(), KvError> {
    loop {
        let progress = kv.progress();
        if progress.durable >= sequence {
            return Ok(());
        }
        if progress.sealed {
            let cause = kv.status().sealed.unwrap_or_else(|| "a write failed".to_owned());
            return Err(KvError::Sealed { cause });
        }
        std::thread::sleep(PAUSE);
    }
}
