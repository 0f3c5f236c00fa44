//! Tells subscribers which attributes have changed, when the changes are durable.
//!
//! A subscriber learns the entity and the scope, and reads the attributes itself. Changes that it has not taken yet are
//! coalesced, so what waits for it is as large as what it watches. Without subscribers a change costs one load of a counter.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kv::{Progress, ProgressWatcher, Sequence};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use uuid::Uuid;

use super::limits::{ATTRIBUTE_CHANGES_WAITING_MAX, WATCHED_ENTITIES_MAX};
use super::scope::Scope;
use crate::registry::EntityId;

/// The attributes of an entity in a scope.
pub type Changed = (EntityId, Scope);

/// What a subscriber has missed since it looked last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Whose attributes have changed.
    pub of: BTreeSet<Changed>,
    /// More changed than fits. Then everything may have changed. This happens only to a subscriber that watches all entities.
    pub is_cut: bool,
}

/// More entities than one subscriber may watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "attributes of {WATCHED_ENTITIES_MAX} entities are watched, which is the limit (WATCHED_ENTITIES_MAX); end some of the subscriptions"
)]
pub struct TooManyWatched;

/// A subscriber of changes. Dropping it ends the subscription.
#[derive(Debug)]
pub struct AttributeWatch {
    feed: Arc<Feed>,
    mailbox: Arc<Mailbox>,
}

#[derive(Debug, Default)]
struct Mailbox {
    watched: Mutex<HashSet<Uuid>>,
    changes: Mutex<Changes>,
    filled: Notify,
}

/// The subscribers, and the changes that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    index: RwLock<Index>,
    subscribers: AtomicUsize,
    /// Bounded like the batches that the key-value store has not made durable ([`kv::limits::UNDURABLE_BYTES_MAX`]).
    waiting: Mutex<VecDeque<(Sequence, Changed)>>,
    waiting_count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Index {
    by_entity: HashMap<Uuid, Vec<Arc<Mailbox>>>,
    of_all: Vec<Arc<Mailbox>>,
}

impl Feed {
    /// A subscriber that watches nothing yet.
    pub(crate) fn subscribe(self: &Arc<Self>) -> AttributeWatch {
        self.subscribers.fetch_add(1, Ordering::SeqCst);
        AttributeWatch { feed: Arc::clone(self), mailbox: Arc::default() }
    }

    /// A subscriber that watches all entities of all tenants.
    #[cfg(test)]
    pub(crate) fn subscribe_to_all(self: &Arc<Self>) -> AttributeWatch {
        let watch = self.subscribe();
        self.index.write().of_all.push(Arc::clone(&watch.mailbox));
        watch
    }

    /// Adds a change. `durable` returns the present progress: the store may have announced its durability before.
    pub(super) fn add(&self, sequence: Sequence, changed: Changed, durable: impl FnOnce() -> Sequence) {
        if self.subscribers.load(Ordering::SeqCst) == 0 {
            return;
        }
        {
            let mut waiting = self.waiting.lock();
            waiting.push_back((sequence, changed));
            self.waiting_count.store(waiting.len(), Ordering::SeqCst);
        }
        self.send(durable());
    }

    fn send(&self, durable: Sequence) {
        if self.waiting_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        let index = self.index.read();
        while let Some((_, changed)) = waiting.pop_front_if(|(sequence, _)| *sequence <= durable) {
            let of_entity = index.by_entity.get(&changed.0.id).into_iter().flatten();
            of_entity.chain(&index.of_all).for_each(|mailbox| mailbox.put(changed));
        }
        self.waiting_count.store(waiting.len(), Ordering::SeqCst);
    }
}

impl ProgressWatcher for Feed {
    fn progress(&self, progress: Progress) {
        self.send(progress.durable);
    }
}

impl Mailbox {
    fn put(&self, changed: Changed) {
        {
            let mut changes = self.changes.lock();
            let is_full = changes.of.len() >= ATTRIBUTE_CHANGES_WAITING_MAX && !changes.of.contains(&changed);
            if is_full {
                *changes = Changes { of: BTreeSet::new(), is_cut: true };
            } else if !changes.is_cut {
                changes.of.insert(changed);
            }
        }
        self.filled.notify_one();
    }
}

impl AttributeWatch {
    /// Watches the attributes of an entity in all scopes. Read them after this call: a change that the reading does not show is
    /// announced. The caller of the hub checks who may see the entity.
    ///
    /// # Errors
    /// The subscriber watches as many entities as it may.
    pub fn watch(&self, entity: EntityId) -> Result<(), TooManyWatched> {
        let mut watched = self.mailbox.watched.lock();
        if watched.contains(&entity.id) {
            return Ok(());
        }
        if watched.len() >= WATCHED_ENTITIES_MAX {
            return Err(TooManyWatched);
        }
        watched.insert(entity.id);
        let mut index = self.feed.index.write();
        index.by_entity.entry(entity.id).or_default().push(Arc::clone(&self.mailbox));
        Ok(())
    }

    /// Watches an entity no longer. A change that was noted before may still come.
    pub fn unwatch(&self, entity: EntityId) {
        if self.mailbox.watched.lock().remove(&entity.id) {
            self.feed.index.write().remove(entity.id, &self.mailbox);
        }
    }

    /// The changes since the last call; empty if there are none.
    pub fn take(&self) -> Changes {
        std::mem::take(&mut *self.mailbox.changes.lock())
    }

    /// Waits for changes and takes them.
    pub async fn next(&self) -> Changes {
        loop {
            let changes = self.take();
            if changes != Changes::default() {
                return changes;
            }
            self.mailbox.filled.notified().await;
        }
    }
}

impl Index {
    fn remove(&mut self, entity: Uuid, mailbox: &Arc<Mailbox>) {
        if let Some(mailboxes) = self.by_entity.get_mut(&entity) {
            mailboxes.retain(|other| !Arc::ptr_eq(other, mailbox));
            if mailboxes.is_empty() {
                self.by_entity.remove(&entity);
            }
        }
    }
}

impl Drop for AttributeWatch {
    fn drop(&mut self) {
        self.feed.subscribers.fetch_sub(1, Ordering::SeqCst);
        let watched = std::mem::take(&mut *self.mailbox.watched.lock());
        let mut index = self.feed.index.write();
        watched.into_iter().for_each(|entity| index.remove(entity, &self.mailbox));
        index.of_all.retain(|other| !Arc::ptr_eq(other, &self.mailbox));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(n: u128) -> EntityId {
        EntityId::device(Uuid::from_u128(n))
    }

    #[test]
    fn changes_come_when_they_are_durable_and_once() {
        let feed = Arc::new(Feed::default());
        let watch = feed.subscribe();
        watch.watch(entity(1)).unwrap();
        watch.watch(entity(1)).unwrap();
        let all = feed.subscribe_to_all();
        for (sequence, n) in [(1, 1), (2, 1), (3, 2)] {
            feed.add(sequence, (entity(n), Scope::Server), || 0);
        }
        assert_eq!((watch.take(), all.take()), (Changes::default(), Changes::default()));
        feed.send(2);
        let one = BTreeSet::from([(entity(1), Scope::Server)]);
        assert_eq!(watch.take(), Changes { of: one.clone(), is_cut: false });
        assert_eq!(all.take().of, one);
        feed.add(4, (entity(1), Scope::Shared), || 4);
        assert_eq!(watch.take().of, BTreeSet::from([(entity(1), Scope::Shared)]));
        assert_eq!(all.take().of.len(), 2, "the third and the fourth");
        watch.unwatch(entity(1));
        feed.add(5, (entity(1), Scope::Shared), || 5);
        assert_eq!(watch.take(), Changes::default());
    }

    #[test]
    fn a_subscriber_that_does_not_look_loses_the_names_but_not_the_fact() {
        let feed = Arc::new(Feed::default());
        let all = feed.subscribe_to_all();
        for n in 0..=ATTRIBUTE_CHANGES_WAITING_MAX as u128 {
            feed.add(n as u64, (entity(n), Scope::Client), || n as u64);
        }
        assert!(all.take().is_cut);
        feed.add(0, (entity(1), Scope::Client), || 1);
        assert_eq!(all.take().of.len(), 1, "after it has looked, it learns the names again");
    }

    #[test]
    fn watches_are_bounded_and_end() {
        let feed = Arc::new(Feed::default());
        let watch = feed.subscribe();
        (0..WATCHED_ENTITIES_MAX as u128).for_each(|n| watch.watch(entity(n)).unwrap());
        let refusal = watch.watch(entity(u128::MAX)).unwrap_err().to_string();
        assert!(refusal.contains("WATCHED_ENTITIES_MAX"), "{refusal}");
        drop(watch);
        assert!(feed.index.read().by_entity.is_empty());
        feed.add(1, (entity(1), Scope::Client), || panic!("nobody watches"));
    }
}
