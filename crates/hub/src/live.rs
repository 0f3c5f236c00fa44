//! Live subscribers: values reach them after they are durable, and none of them can slow down ingest.
//!
//! Ingest queues the rows of watched series with the sequence that makes them durable; the [`Live::deliver`] side
//! moves them to the subscribers' mailboxes once the store has come that far. A mailbox is bounded: a subscriber
//! that does not read keeps the newest value of each key and loses the ones between ([`Update::ts`] tells which).

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Batch, SeriesId, Timestamp, Value};
use parking_lot::Mutex;
use store::{Durability, Progress, Sequence};
use tokio::sync::Notify;

use crate::metrics::Metrics;

/// Updates that a subscriber may leave unread before they are reduced to the newest value per key.
pub const MAILBOX_UPDATES_MAX: usize = 4_096;
/// Series one subscriber may watch.
pub const SERIES_PER_SUBSCRIBER_MAX: usize = 100_000;

/// One value of one key, as it became durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The series it belongs to.
    pub series: SeriesId,
    /// The name it was reported under.
    pub key: String,
    /// Its time.
    pub ts: Timestamp,
    /// The value.
    pub value: Value,
}

/// The meeting point of ingest and subscribers.
#[derive(Debug)]
pub struct Live {
    metrics: Arc<Metrics>,
    // Read on every batch; the maps behind it are touched only when somebody watches.
    watched_series: AtomicUsize,
    watchers: Mutex<HashMap<SeriesId, Vec<Arc<Mailbox>>>>,
    pending: Mutex<VecDeque<Pending>>,
}

#[derive(Debug)]
struct Pending {
    sequence: Sequence,
    durability: Durability,
    updates: Vec<Update>,
}

/// Where a subscriber's updates wait for it.
#[derive(Debug, Default)]
struct Mailbox {
    updates: Mutex<Vec<Update>>,
    filled: Notify,
}

/// A subscriber; dropped, it stops watching.
#[derive(Debug)]
pub struct Subscriber {
    live: Arc<Live>,
    mailbox: Arc<Mailbox>,
    series: Vec<SeriesId>,
}

impl Live {
    /// Nobody watches anything.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            watched_series: AtomicUsize::new(0),
            watchers: Mutex::default(),
            pending: Mutex::default(),
        }
    }

    /// A subscriber that watches nothing yet.
    pub fn subscriber(self: &Arc<Self>) -> Subscriber {
        Subscriber { live: Arc::clone(self), mailbox: Arc::default(), series: Vec::new() }
    }

    /// Remembers the watched rows of a batch that was appended up to `sequence`; says whether there were any.
    pub fn queue(&self, batch: &Batch, sequence: Sequence, durability: Durability) -> bool {
        if self.watched_series.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut updates = Vec::new();
        {
            let watchers = self.watchers.lock();
            for row in batch.rows().filter(|row| watchers.contains_key(&row.series())) {
                updates.extend(row.fields().map(|field| Update {
                    series: row.series(),
                    key: field.key.to_owned(),
                    ts: row.ts(),
                    value: field.value.to_owned(),
                }));
            }
        }
        if updates.is_empty() {
            return false;
        }
        self.pending.lock().push_back(Pending { sequence, durability, updates });
        true
    }

    /// Whether rows wait for the store to come further.
    pub fn has_pending(&self) -> bool {
        !self.pending.lock().is_empty()
    }

    /// Hands over what `progress` has made as durable as its class asks for.
    pub fn deliver(&self, progress: Progress) {
        let ready: Vec<Pending> = {
            let mut pending = self.pending.lock();
            if progress.sealed {
                // What is not durable now never will be, so nobody may see it.
                pending.retain(|entry| entry.sequence <= progress.reached(entry.durability));
            }
            take_ready(&mut pending, progress)
        };
        for update in ready.into_iter().flat_map(|entry| entry.updates) {
            self.hand_over(update);
        }
    }

    fn hand_over(&self, update: Update) {
        let watchers = self.watchers.lock();
        for mailbox in watchers.get(&update.series).into_iter().flatten() {
            self.metrics.live_values.inc();
            let lost = mailbox.put(update.clone());
            self.metrics.live_coalesced.inc_by(lost as u64);
        }
    }

    fn watch(&self, series: SeriesId, mailbox: &Arc<Mailbox>) {
        let mut watchers = self.watchers.lock();
        watchers.entry(series).or_default().push(Arc::clone(mailbox));
        self.watched_series.store(watchers.len(), Ordering::Release);
    }

    fn unwatch(&self, series: SeriesId, mailbox: &Arc<Mailbox>) {
        let mut watchers = self.watchers.lock();
        if let Entry::Occupied(mut entry) = watchers.entry(series) {
            entry.get_mut().retain(|other| !Arc::ptr_eq(other, mailbox));
            if entry.get().is_empty() {
                entry.remove();
            }
        }
        self.watched_series.store(watchers.len(), Ordering::Release);
    }
}

fn take_ready(pending: &mut VecDeque<Pending>, progress: Progress) -> Vec<Pending> {
    let mut ready = Vec::new();
    let mut waiting = VecDeque::with_capacity(pending.len());
    for entry in pending.drain(..) {
        if entry.sequence <= progress.reached(entry.durability) {
            ready.push(entry);
        } else {
            waiting.push_back(entry);
        }
    }
    *pending = waiting;
    ready
}

impl Mailbox {
    /// Adds an update; returns how many older ones had to go.
    fn put(&self, update: Update) -> usize {
        let mut updates = self.updates.lock();
        updates.push(update);
        let lost = if updates.len() > MAILBOX_UPDATES_MAX { coalesce(&mut updates) } else { 0 };
        self.filled.notify_one();
        lost
    }
}

/// Keeps the newest value (by ts, then by arrival) of each key of each series, in the order of arrival.
fn coalesce(updates: &mut Vec<Update>) -> usize {
    let before = updates.len();
    let mut newest: HashMap<(SeriesId, String), usize> = HashMap::new();
    for (index, update) in updates.iter().enumerate() {
        let kept = newest.entry((update.series, update.key.clone())).or_insert(index);
        if updates[*kept].ts <= update.ts {
            *kept = index;
        }
    }
    let mut index = 0;
    updates.retain(|update| {
        let keep = newest.get(&(update.series, update.key.clone())) == Some(&index);
        index += 1;
        keep
    });
    before - updates.len()
}

impl Subscriber {
    /// Watches one more series. `false` when the subscriber already watches as many as it may.
    pub fn watch(&mut self, series: SeriesId) -> bool {
        if self.series.contains(&series) {
            return true;
        }
        if self.series.len() >= SERIES_PER_SUBSCRIBER_MAX {
            return false;
        }
        self.live.watch(series, &self.mailbox);
        self.series.push(series);
        true
    }

    /// Stops watching a series.
    pub fn unwatch(&mut self, series: SeriesId) {
        if let Some(index) = self.series.iter().position(|watched| *watched == series) {
            self.series.swap_remove(index);
            self.live.unwatch(series, &self.mailbox);
        }
    }

    /// Waits until there are updates and takes them all, oldest first.
    pub async fn next(&self) -> Vec<Update> {
        loop {
            let taken = std::mem::take(&mut *self.mailbox.updates.lock());
            if !taken.is_empty() {
                return taken;
            }
            self.mailbox.filled.notified().await;
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for series in &self.series {
            self.live.unwatch(*series, &self.mailbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::ValueRef;

    use super::*;

    fn live() -> Arc<Live> {
        Arc::new(Live::new(Arc::new(Metrics::new())))
    }

    fn batch(series: u64, ts: i64, key: &str, value: i64) -> Batch {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field(key, ValueRef::I64(value));
        builder.row(SeriesId(series), Timestamp::from_micros(ts));
        builder.finish();
        batch
    }

    fn durable(sequence: Sequence) -> Progress {
        Progress { appended: 100, written: sequence, durable: sequence, sealed: false }
    }

    fn waiting(subscriber: &Subscriber) -> Vec<i64> {
        subscriber.mailbox.updates.lock().iter().map(|update| update.ts.micros()).collect()
    }

    #[test]
    fn nothing_is_queued_when_nobody_watches() {
        let live = live();
        assert!(!live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync));
        let mut subscriber = live.subscriber();
        subscriber.watch(SeriesId(2));
        assert!(!live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync));
        assert!(!live.has_pending());
    }

    #[test]
    fn values_arrive_only_when_their_class_is_reached() {
        let live = live();
        let mut subscriber = live.subscriber();
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync);
        live.queue(&batch(1, 20, "a", 2), 2, Durability::Memory);
        live.queue(&batch(1, 30, "a", 3), 3, Durability::Fsync);
        live.deliver(durable(0));
        assert_eq!(waiting(&subscriber), [20]);
        live.deliver(durable(1));
        assert_eq!(waiting(&subscriber), [20, 10]);
        live.deliver(durable(3));
        assert_eq!(waiting(&subscriber), [20, 10, 30]);
        assert!(!live.has_pending());
    }

    #[test]
    fn a_sealed_store_takes_back_what_was_not_durable() {
        let live = live();
        let mut subscriber = live.subscriber();
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 5, Durability::Fsync);
        live.deliver(Progress { sealed: true, ..durable(4) });
        assert!(waiting(&subscriber).is_empty() && !live.has_pending());
    }

    #[test]
    fn a_slow_subscriber_keeps_the_newest_value_of_each_key() {
        let live = live();
        let mut subscriber = live.subscriber();
        subscriber.watch(SeriesId(1));
        for n in 0..=MAILBOX_UPDATES_MAX as i64 {
            let key = if n % 2 == 0 { "even" } else { "odd" };
            live.queue(&batch(1, n, key, n), 1, Durability::Memory);
        }
        live.deliver(durable(1));
        let newest = MAILBOX_UPDATES_MAX as i64;
        assert_eq!(waiting(&subscriber), [newest - 1, newest]);
        assert_eq!(live.metrics.live_coalesced.get(), newest as u64 - 1);
    }

    #[test]
    fn unwatching_and_dropping_stop_the_flow() {
        let live = live();
        let (mut one, mut other) = (live.subscriber(), live.subscriber());
        one.watch(SeriesId(1));
        other.watch(SeriesId(1));
        one.unwatch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 1, Durability::Memory);
        live.deliver(durable(1));
        assert!(waiting(&one).is_empty());
        assert_eq!(waiting(&other), [10]);
        drop(other);
        assert_eq!(live.watched_series.load(Ordering::Acquire), 0);
    }
}
