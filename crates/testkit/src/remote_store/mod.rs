//! A store that behaves like one on another machine: answers about durability come late and out of order, it is busy at times, and it
//! can lose single writes.
//!
//! It keeps its rows in a [`MemoryStore`]. Callers that rely on more than the contract says fail with it: on rows that are durable when
//! `append` returns, on a store that always has room, or on a write that is kept because later ones are.

mod link;

use std::sync::Arc;

use model::{SeriesId, SeriesKey};
use store::conformance::Wrapper;
use store::{MemoryStore, Progress, ProgressWatcher, Reader, Store, StoreError, Ticket, Writer};

use link::Link;

/// A store behind a slow link.
pub struct RemoteStore {
    inner: MemoryStore,
    link: Link,
}

impl RemoteStore {
    /// An empty store. The seed decides which writes are answered before earlier ones, and how late.
    pub fn new(seed: u64) -> Self {
        Self { inner: MemoryStore::new(), link: Link::new(seed) }
    }

    /// Loses one write in `every` from now on, after it was taken. 0 ends that.
    pub fn lose_one_in(&self, every: u64) {
        self.link.lose_one_in(every);
    }

    /// Holds back the answers to all writes until [`release`](Self::release).
    pub fn hold(&self) {
        self.inner.hold();
    }

    /// Ends [`hold`](Self::hold).
    pub fn release(&self) {
        self.inner.release();
        self.link.wake();
    }

    /// Loses a write that the store has taken.
    pub fn lose(&self, ticket: Ticket, cause: &str) {
        self.inner.lose(ticket, cause);
    }
}

impl Wrapper for RemoteStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn write<T>(&self, write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.link.admit()?;
        write()
    }

    fn make_series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        if self.inner.find_series(key).is_none() {
            self.link.admit()?;
        }
        self.inner.series(key)
    }

    fn taken(&self, ticket: Ticket) {
        if self.link.loses() {
            self.inner.lose(ticket, "the shard of these rows is gone");
        }
        self.link.sent(ticket.last);
    }

    fn shown_progress(&self) -> Progress {
        self.link.progress(self.inner.progress())
    }

    fn add_watcher(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.link.watch(watcher);
    }

    fn end(&self) {
        self.link.finish();
    }
}

#[cfg(test)]
mod tests {
    use store::{Durability, Outcome};

    use super::*;

    #[test]
    fn it_keeps_the_contract() {
        store::conformance::run(&|| Arc::new(RemoteStore::new(7)));
    }

    #[test]
    fn a_lost_write_fails_alone() {
        let store = Arc::new(RemoteStore::new(3));
        store::conformance::run_late_failures(&store, &|ticket| store.lose(ticket, "a test"));
    }

    #[test]
    fn one_write_in_three_is_lost_and_no_other() {
        let store = RemoteStore::new(5);
        let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
        store.lose_one_in(3);
        let (mut kept, mut lost) = (0, 0);
        while kept + lost < 30 {
            let batch = store::conformance::batch_of(series, &[(kept, &[("x", model::Value::I64(kept))])]);
            let Ok(sequence) = store.append(&batch, Durability::Fsync) else { continue };
            store::conformance::wait(&store, Durability::Fsync, sequence);
            match store.outcome(Ticket::of_rows(sequence, 1), Durability::Fsync) {
                Outcome::Kept => kept += 1,
                Outcome::Failed(StoreError::Lost { .. }) => lost += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((kept, lost), (20, 10));
    }

    #[test]
    fn an_append_returns_before_its_rows_are_durable_and_every_eighth_write_finds_it_busy() {
        let store = RemoteStore::new(1);
        let key = SeriesKey::device("t", "d").unwrap();
        let series = store.series(&key).unwrap();
        let (mut busy, mut late) = (0, 0);
        for ts in 0..64 {
            let batch = store::conformance::batch_of(series, &[(ts, &[("x", model::Value::I64(ts))])]);
            match store.append(&batch, Durability::Fsync) {
                Ok(sequence) => late += u32::from(store.progress().durable < sequence),
                Err(StoreError::Busy { .. }) => busy += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(busy, 8);
        assert!(late > 0);
    }
}
