//! Where a subscriber's updates wait for it.

use std::collections::HashMap;

use model::SeriesId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{MAILBOX_UPDATES_MAX, Update};

/// The mailbox of one subscriber.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    content: Mutex<Content>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Content {
    updates: Vec<Update>,
    /// More updates than this are reduced. It is twice of what was left the last time: with more keys than the
    /// maximum, reducing at every update would cost all of them every time.
    reduce_above: usize,
}

impl Mailbox {
    /// Adds updates, which the subscriber finds together; returns how many older ones had to go.
    pub(super) fn put(&self, updates: &[Update]) -> usize {
        let mut content = self.content.lock();
        let mut lost = 0;
        for update in updates {
            content.updates.push(update.clone());
            if content.updates.len() > content.reduce_above.max(MAILBOX_UPDATES_MAX) {
                lost += coalesce(&mut content.updates);
                content.reduce_above = 2 * content.updates.len();
            }
        }
        drop(content);
        self.filled.notify_one();
        lost
    }

    /// Waits until there are updates and takes them all, oldest first.
    pub(super) async fn take(&self) -> Vec<Update> {
        loop {
            let taken = std::mem::take(&mut *self.content.lock()).updates;
            if !taken.is_empty() {
                return taken;
            }
            self.filled.notified().await;
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<Update> {
        self.content.lock().updates.clone()
    }
}

/// Keeps the newest value (by ts, then by arrival) of each key of each series, in the order of arrival.
pub(super) fn coalesce(updates: &mut Vec<Update>) -> usize {
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
    before - updates.len()
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, Value};

    use super::*;

    #[test]
    fn more_keys_than_the_maximum_are_all_kept_and_not_reduced_each_time() {
        let mailbox = Mailbox::default();
        let keys = 2 * MAILBOX_UPDATES_MAX;
        for n in 0..4 * keys {
            let (ts, series) = (Timestamp::from_micros(n as i64), SeriesId((n % keys) as u64));
            mailbox.put(&[Update { series, key: "a".into(), ts, value: Value::I64(n as i64) }]);
        }
        let waiting = mailbox.waiting();
        let newest: HashMap<_, _> = waiting.iter().map(|update| (update.series, update.ts)).collect();
        assert!(newest.len() == keys && newest.values().all(|ts| ts.micros() >= 3 * keys as i64));
        assert!(waiting.len() > keys && waiting.len() <= 2 * keys);
    }
}
