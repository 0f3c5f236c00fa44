//! The mailbox of a subscriber: updates that the subscriber has not taken yet.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::account::{Account, Unread};
use super::update::{MAILBOX_REDUCE_BYTES, MAILBOX_UPDATES_MAX, Update, coalesce};

/// The mailbox of one subscriber.
#[derive(Debug)]
pub(super) struct Mailbox {
    account: Arc<Account>,
    content: Mutex<Content>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Content {
    updates: Vec<Arc<Update>>,
    bytes: usize,
    /// Above this many updates or bytes the mailbox is reduced. The bound is twice the size after the last reduction: with
    /// more keys than the maximum, a reduction at every update would visit all keys every time.
    reduce_above: (usize, usize),
}

/// Updates that a subscriber took out of its mailbox, oldest first. Their bytes count for the connection until this is
/// dropped.
#[derive(Debug)]
pub struct Updates {
    account: Arc<Account>,
    updates: Vec<Arc<Update>>,
    bytes: usize,
}

impl Deref for Updates {
    type Target = [Arc<Update>];

    fn deref(&self) -> &Self::Target {
        &self.updates
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.updates = Vec::new();
        self.account.release(self.bytes);
    }
}

impl Mailbox {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self { account, content: Mutex::default(), filled: Notify::new() }
    }

    /// Adds updates, which the subscriber takes together. Returns how many older updates were dropped. If too many bytes are
    /// unread, this connection or a larger one is closed.
    pub(super) fn put(&self, updates: &[Arc<Update>]) -> usize {
        if self.account.is_over() {
            return updates.len();
        }
        let (mut lost, is_over) = {
            let mut content = self.content.lock();
            let before = content.bytes;
            let lost = content.add(updates);
            // Counted under the lock: otherwise the subscriber could release bytes that are not yet counted.
            (lost, self.count(before, content.bytes))
        };
        if is_over {
            {
                let mut content = self.content.lock();
                let before = content.bytes;
                lost += content.reduce();
                self.count(before, content.bytes);
            }
            self.account.enforce();
        }
        self.filled.notify_one();
        lost
    }

    fn count(&self, before: usize, after: usize) -> bool {
        if after > before {
            return self.account.charge(after - before);
        }
        self.account.release(before - after);
        false
    }

    /// Waits for updates and takes them, oldest first. Of a large content it takes only the first updates: the rest can be
    /// reduced while the door sends these.
    pub(super) async fn take(&self) -> Updates {
        loop {
            if let Some(taken) = self.take_now() {
                return taken;
            }
            self.filled.notified().await;
        }
    }

    fn take_now(&self) -> Option<Updates> {
        let (updates, bytes) = self.content.lock().take();
        (!updates.is_empty()).then(|| Updates { account: Arc::clone(&self.account), updates, bytes })
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<Arc<Update>> {
        self.content.lock().updates.clone()
    }
}

impl Unread for Mailbox {
    fn discard(&self) {
        let Content { updates, bytes, .. } = std::mem::take(&mut *self.content.lock());
        drop(updates);
        self.account.release(bytes);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.discard();
    }
}

impl Content {
    /// Takes the first updates; returns them with their bytes.
    fn take(&mut self) -> (Vec<Arc<Update>>, usize) {
        if self.bytes <= MAILBOX_REDUCE_BYTES {
            let Self { updates, bytes, .. } = std::mem::take(self);
            return (updates, bytes);
        }
        let mut bytes = 0;
        let first = self.updates.iter().take_while(|update| {
            let fits = bytes < MAILBOX_REDUCE_BYTES;
            bytes += if fits { update.weight() } else { 0 };
            fits
        });
        let count = first.count();
        self.bytes -= bytes;
        (self.updates.drain(..count).collect(), bytes)
    }

    fn add(&mut self, updates: &[Arc<Update>]) -> usize {
        let mut lost = 0;
        for update in updates {
            self.updates.push(Arc::clone(update));
            self.bytes += update.weight();
            let (count, bytes) = self.reduce_above;
            if self.updates.len() > count.max(MAILBOX_UPDATES_MAX)
                || self.bytes > bytes.max(MAILBOX_REDUCE_BYTES)
            {
                lost += self.reduce();
            }
        }
        lost
    }

    fn reduce(&mut self) -> usize {
        let lost = coalesce(&mut self.updates);
        self.bytes = self.updates.iter().map(|update| update.weight()).sum();
        self.reduce_above = (2 * self.updates.len(), 2 * self.bytes);
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use model::{SeriesId, Timestamp, Value};
    use uuid::Uuid;

    use super::super::account::{Accounts, Limits};
    use super::*;

    fn mailbox(limits: Limits) -> (Arc<Accounts>, Arc<Mailbox>) {
        let accounts = Arc::new(Accounts::with_limits(limits));
        let mailbox = Arc::new(Mailbox::new(Arc::new(accounts.open(Uuid::nil(), Uuid::nil()))));
        mailbox.account.add(&mailbox);
        (accounts, mailbox)
    }

    fn text(series: u64, ts: i64, length: usize) -> Arc<Update> {
        let (series, ts) = (SeriesId(series), Timestamp::from_micros(ts));
        Arc::new(Update { series, key: "a".into(), ts, value: Value::String("x".repeat(length)) })
    }

    #[test]
    fn more_keys_than_the_maximum_are_all_kept_and_not_reduced_each_time() {
        let (_, mailbox) = mailbox(Limits::default());
        let keys = 2 * MAILBOX_UPDATES_MAX;
        for n in 0..4 * keys {
            let (ts, series) = (Timestamp::from_micros(n as i64), SeriesId((n % keys) as u64));
            mailbox.put(&[Arc::new(Update { series, key: "a".into(), ts, value: Value::I64(n as i64) })]);
        }
        let waiting = mailbox.waiting();
        let newest: HashMap<_, _> = waiting.iter().map(|update| (update.series, update.ts)).collect();
        assert!(newest.len() == keys && newest.values().all(|ts| ts.micros() >= 3 * keys as i64));
        assert!(waiting.len() > keys && waiting.len() <= 2 * keys);
    }

    #[test]
    fn long_values_are_reduced_by_their_bytes() {
        let (accounts, mailbox) = mailbox(Limits::default());
        let lost: usize = (0..100).map(|n| mailbox.put(&[text(1, n, MAILBOX_REDUCE_BYTES / 8)])).sum();
        assert!(lost > 80 && accounts.total() <= 2 * MAILBOX_REDUCE_BYTES, "{lost}, {}", accounts.total());
        assert_eq!(mailbox.waiting().last().unwrap().ts.micros(), 99);
    }

    #[tokio::test]
    async fn a_take_is_bounded_and_the_rest_is_still_reduced() {
        let (accounts, mailbox) = mailbox(Limits::default());
        let length = MAILBOX_REDUCE_BYTES / 4;
        for series in 0..16 {
            mailbox.put(&[text(series, 1, length)]);
        }
        let first = mailbox.take().await;
        assert_eq!(first.iter().map(|update| update.series.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
        for series in 4..16 {
            mailbox.put(&[text(series, 2, length)]);
        }
        let mut seen = Vec::new();
        while seen.last() != Some(&(15, 2)) {
            seen.extend(mailbox.take().await.iter().map(|update| (update.series.0, update.ts.micros())));
        }
        assert!(seen.len() < 24, "{seen:?}");
        drop(first);
        assert_eq!(accounts.total(), 0);
    }

    #[tokio::test]
    async fn taken_updates_count_until_they_are_dropped_and_an_overrun_ends_the_connection() {
        let limits = Limits { connection: 10_000, login: 20_000, total: 20_000 };
        let (accounts, mailbox) = mailbox(limits);
        mailbox.put(&[text(1, 1, 4_000)]);
        let taken = mailbox.take().await;
        assert!(accounts.total() > 4_000 && mailbox.waiting().is_empty());
        mailbox.put(&[text(1, 1, 4_000)]);
        drop(taken);
        assert!((4_000..5_000).contains(&accounts.total()), "{}", accounts.total());
        // The mailbox reduces a repeated key. Further keys exceed the limit.
        assert_eq!(mailbox.put(&[text(1, 2, 4_000), text(1, 3, 4_000)]), 2);
        assert!(!mailbox.account.is_over());
        mailbox.put(&[text(2, 1, 4_000), text(3, 1, 4_000)]);
        assert!(mailbox.account.is_over() && mailbox.waiting().is_empty());
        assert_eq!(accounts.total(), 0);
        assert_eq!(mailbox.account.overrun().await.limit, "LIVE_CONNECTION_BYTES_MAX");
        assert_eq!(mailbox.put(&[text(2, 1, 4_000)]), 1);
    }
}
