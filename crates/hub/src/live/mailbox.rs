//! Where a subscriber's updates wait for it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use model::SeriesId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::account::Account;
use super::{MAILBOX_REDUCE_BYTES, MAILBOX_UPDATES_MAX, Update};

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
    /// More updates or bytes than this are reduced. It is twice of what was left the last time: with more keys than the
    /// maximum, reducing at every update would cost all of them every time.
    reduce_above: (usize, usize),
}

/// Updates that were taken out of a mailbox, oldest first. They count for the connection until this is dropped.
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

    /// Adds updates, which the subscriber finds together; returns how many older ones had to go. A connection that leaves
    /// too much unread is given up, or another one that leaves more.
    pub(super) fn put(&self, updates: &[Arc<Update>]) -> usize {
        if self.account.is_over() {
            return updates.len();
        }
        let (mut lost, is_over) = {
            let mut content = self.content.lock();
            let before = content.bytes;
            let lost = content.add(updates);
            // Under the lock, or who takes the content could release what is not yet counted.
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

    /// Waits until there are updates and takes them, oldest first. Of very many it takes the first: the others can still be
    /// reduced while these are sent.
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

    /// Throws the content away.
    pub(super) fn clear(&self) {
        let Content { updates, bytes, .. } = std::mem::take(&mut *self.content.lock());
        drop(updates);
        self.account.release(bytes);
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<Arc<Update>> {
        self.content.lock().updates.clone()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Content {
    /// The first updates, and their bytes.
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

/// Keeps the newest value (by ts, then by arrival) of each key of each series, in the order of arrival.
pub(super) fn coalesce(updates: &mut Vec<Arc<Update>>) -> usize {
    let before = updates.len();
    let mut newest: HashMap<(SeriesId, &str), usize> = HashMap::new();
    for (index, update) in updates.iter().enumerate() {
        let kept = newest.entry((update.series, update.key.as_str())).or_insert(index);
        if updates[*kept].ts <= update.ts {
            *kept = index;
        }
    }
    let mut keep = vec![false; before];
    newest.into_values().for_each(|index| keep[index] = true);
    let mut kept = keep.into_iter();
    updates.retain(|_| kept.next() == Some(true));
    updates.shrink_to(2 * updates.len());
    before - updates.len()
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, Value};
    use uuid::Uuid;

    use super::super::account::{Accounts, Limits};
    use super::*;

    fn mailbox(limits: Limits) -> (Arc<Accounts>, Arc<Mailbox>) {
        let accounts = Arc::new(Accounts::with_limits(limits));
        let mailbox = Arc::new(Mailbox::new(Arc::new(accounts.open(Uuid::nil()))));
        mailbox.account.add_mailbox(&mailbox);
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
    async fn of_very_many_the_first_are_taken_and_the_others_go_on_being_reduced() {
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
    async fn what_was_taken_counts_until_it_is_dropped_and_too_much_ends_the_connection() {
        let limits = Limits { connection: 10_000, login: 20_000, total: 20_000 };
        let (accounts, mailbox) = mailbox(limits);
        mailbox.put(&[text(1, 1, 4_000)]);
        let taken = mailbox.take().await;
        assert!(accounts.total() > 4_000 && mailbox.waiting().is_empty());
        mailbox.put(&[text(1, 1, 4_000)]);
        drop(taken);
        assert!((4_000..5_000).contains(&accounts.total()), "{}", accounts.total());
        // The same key again is reduced, other keys are too much.
        assert_eq!(mailbox.put(&[text(1, 2, 4_000), text(1, 3, 4_000)]), 2);
        assert!(!mailbox.account.is_over());
        mailbox.put(&[text(2, 1, 4_000), text(3, 1, 4_000)]);
        assert!(mailbox.account.is_over() && mailbox.waiting().is_empty());
        assert_eq!(accounts.total(), 0);
        assert_eq!(mailbox.account.overrun().await.limit, "LIVE_CONNECTION_BYTES_MAX");
        assert_eq!(mailbox.put(&[text(2, 1, 4_000)]), 1);
    }
}
