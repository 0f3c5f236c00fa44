//! The live bus: moves values of watched series from ingest to the mailboxes of subscribers.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use model::limits::Portion;
use model::{Batch, SeriesId};
use parking_lot::{Mutex, RwLock};
use store::{Durability, Progress, Sequence, Ticket};
use tokio::sync::watch;
use uuid::Uuid;

use super::account::{Account, Accounts, Overrun};
use super::mailbox::{Mailbox, Updates};
use super::pending::Pending;
use super::update::Update;
use crate::metrics::Metrics;

/// Series that one subscriber may watch.
pub const SERIES_PER_SUBSCRIBER_MAX: usize = 100_000;

/// Brings values from ingest to live subscribers.
#[derive(Debug)]
pub struct Live {
    metrics: Arc<Metrics>,
    accounts: Arc<Accounts>,
    // Ingest reads it for every batch and locks the map below only if it is above 0.
    watched_series: AtomicUsize,
    watchers: RwLock<HashMap<SeriesId, Vec<Arc<Mailbox>>>>,
    pending: Mutex<Pending>,
    // Number of updates in `pending`. The store's thread reads it without a lock.
    pending_updates: AtomicUsize,
    // Grows with every series of a device that is created.
    new_series: watch::Sender<u64>,
}

/// A client's connection. The unread bytes of all its subscribers count together.
#[derive(Debug)]
pub struct LiveConnection {
    live: Arc<Live>,
    account: Arc<Account>,
}

/// A subscriber. It stops watching when it is dropped.
#[derive(Debug)]
pub struct Subscriber {
    live: Arc<Live>,
    mailbox: Arc<Mailbox>,
    series: HashSet<SeriesId>,
}

impl Live {
    /// Without subscribers.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self::on(Portion::ALL, metrics)
    }

    /// Like [`new`](Self::new), with bounds that fit the memory of this machine.
    pub fn on(memory: Portion, metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            accounts: Arc::new(Accounts::on(memory)),
            watched_series: AtomicUsize::new(0),
            watchers: RwLock::default(),
            pending: Mutex::default(),
            pending_updates: AtomicUsize::new(0),
            new_series: watch::Sender::new(0),
        }
    }

    /// Notes that a device has got its series.
    pub(crate) fn series_created(&self) {
        self.new_series.send_modify(|count| *count += 1);
    }

    /// Changes whenever a device gets its series. A reader creates no series: it looks again when this has changed.
    pub fn new_series(&self) -> watch::Receiver<u64> {
        self.new_series.subscribe()
    }

    /// Opens a connection of the user with this id, of a tenant. Connections without a login share the nil id.
    pub fn connection(self: &Arc<Self>, login: Uuid, tenant: Uuid) -> LiveConnection {
        LiveConnection { live: Arc::clone(self), account: Arc::new(self.accounts.open(login, tenant)) }
    }

    /// Queues the values of watched series in a batch that ends at `sequence`. Returns whether the batch has any.
    pub fn queue(&self, batch: &Batch, sequence: Sequence, durability: Durability) -> bool {
        if self.watched_series.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut updates = Vec::new();
        {
            let watchers = self.watchers.read();
            for row in batch.rows().filter(|row| watchers.contains_key(&row.series())) {
                updates.extend(row.fields().map(|field| {
                    Arc::new(Update {
                        series: row.series(),
                        key: field.key.to_owned(),
                        ts: row.ts(),
                        value: field.value.to_owned(),
                    })
                }));
            }
        }
        if updates.is_empty() {
            return false;
        }
        let mut pending = self.pending.lock();
        let lost = pending.push(Ticket::of_rows(sequence, batch.len()), durability, updates);
        self.metrics.live_coalesced.inc_by(lost as u64);
        self.pending_updates.store(pending.len(), Ordering::Release);
        // The caller reads the store's progress next. The store's thread sets the progress and then reads this counter.
        // The fence makes sure that one of the two sees the change of the other.
        fence(Ordering::SeqCst);
        true
    }

    /// Whether updates wait for the store. Takes no lock.
    pub fn has_pending(&self) -> bool {
        // The other half of the fence in `queue`.
        fence(Ordering::SeqCst);
        self.pending_updates.load(Ordering::Acquire) > 0
    }

    /// Moves the updates that `progress` has made durable to the mailboxes of their subscribers, but not those of writes that the
    /// store lost.
    pub fn deliver(&self, progress: Progress, is_lost: &dyn Fn(Ticket) -> bool) {
        let ready = {
            let mut pending = self.pending.lock();
            let ready = pending.take_ready(progress, is_lost);
            self.pending_updates.store(pending.len(), Ordering::Release);
            ready
        };
        if ready.is_empty() {
            return;
        }
        let watchers = self.watchers.read();
        // The values of a series go into a mailbox together, so a subscriber never sees half a row.
        for of_series in ready.chunk_by(|one, next| one.series == next.series) {
            for mailbox in watchers.get(&of_series[0].series).into_iter().flatten() {
                self.metrics.live_values.inc_by(of_series.len() as u64);
                let lost = mailbox.put(of_series);
                self.metrics.live_coalesced.inc_by(lost as u64);
            }
        }
    }

    fn watch(&self, series: SeriesId, mailbox: &Arc<Mailbox>) {
        let mut watchers = self.watchers.write();
        watchers.entry(series).or_default().push(Arc::clone(mailbox));
        self.watched_series.store(watchers.len(), Ordering::Release);
    }

    fn unwatch(&self, series: impl Iterator<Item = SeriesId>, mailbox: &Arc<Mailbox>) {
        let mut watchers = self.watchers.write();
        for series in series {
            if let Entry::Occupied(mut entry) = watchers.entry(series) {
                entry.get_mut().retain(|other| !Arc::ptr_eq(other, mailbox));
                if entry.get().is_empty() {
                    entry.remove();
                }
            }
        }
        self.watched_series.store(watchers.len(), Ordering::Release);
    }
}

impl LiveConnection {
    /// Creates a subscriber that watches no series yet.
    pub fn subscriber(&self) -> Subscriber {
        let mailbox = Arc::new(Mailbox::new(Arc::clone(&self.account)));
        self.account.add(&mailbox);
        Subscriber { live: Arc::clone(&self.live), mailbox, series: HashSet::new() }
    }

    /// Waits until the server gives the connection up because too many bytes are unread. Its subscribers then get no more
    /// updates.
    pub async fn overrun(&self) -> Overrun {
        self.account.overrun().await
    }
}

impl Subscriber {
    /// Watches one more series. Returns `false` if the subscriber watches [`SERIES_PER_SUBSCRIBER_MAX`] series already.
    pub fn watch(&mut self, series: SeriesId) -> bool {
        if self.series.contains(&series) {
            return true;
        }
        if self.series.len() >= SERIES_PER_SUBSCRIBER_MAX {
            return false;
        }
        self.live.watch(series, &self.mailbox);
        self.series.insert(series)
    }

    /// Stops watching a series.
    pub fn unwatch(&mut self, series: SeriesId) {
        if self.series.remove(&series) {
            self.live.unwatch(std::iter::once(series), &self.mailbox);
        }
    }

    /// Waits for updates and takes them, oldest first. Of very many it takes only the first.
    pub async fn next(&self) -> Updates {
        self.mailbox.take().await
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.live.unwatch(self.series.drain(), &self.mailbox);
    }
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, ValueRef};

    use super::super::update::{MAILBOX_UPDATES_MAX, PENDING_UPDATES_MAX};
    use super::*;

    fn live() -> Arc<Live> {
        Arc::new(Live::new(Arc::new(Metrics::new())))
    }

    fn subscriber(live: &Arc<Live>) -> Subscriber {
        live.connection(Uuid::nil(), Uuid::nil()).subscriber()
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
        subscriber.mailbox.waiting().iter().map(|update| update.ts.micros()).collect()
    }

    #[test]
    fn nothing_is_queued_when_nobody_watches() {
        let live = live();
        assert!(!live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync));
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(2));
        assert!(!live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync));
        assert!(!live.has_pending());
    }

    #[test]
    fn values_arrive_only_when_their_class_is_reached() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync);
        live.queue(&batch(1, 20, "a", 2), 2, Durability::Memory);
        live.queue(&batch(1, 30, "a", 3), 3, Durability::Fsync);
        live.deliver(durable(0), &|_| false);
        assert_eq!(waiting(&subscriber), [20]);
        live.deliver(durable(1), &|_| false);
        assert_eq!(waiting(&subscriber), [20, 10]);
        live.deliver(durable(3), &|_| false);
        assert_eq!(waiting(&subscriber), [20, 10, 30]);
        assert!(!live.has_pending());
    }

    #[test]
    fn a_sealed_store_drops_updates_that_were_not_durable() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 5, Durability::Fsync);
        live.queue(&batch(1, 20, "a", 1), 4, Durability::Fsync);
        live.deliver(Progress { sealed: true, ..durable(4) }, &|_| false);
        assert_eq!(waiting(&subscriber), [20]);
        assert!(!live.has_pending());
    }

    #[test]
    fn updates_of_a_write_that_the_store_lost_are_not_delivered() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 1, Durability::Fsync);
        live.queue(&batch(1, 20, "a", 2), 2, Durability::Fsync);
        live.deliver(durable(2), &|ticket| ticket == Ticket::of_rows(1, 1));
        assert_eq!(waiting(&subscriber), [20]);
    }

    #[test]
    fn updates_queued_out_of_order_are_delivered_in_order() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        for sequence in [1, 4, 2, 3] {
            live.queue(&batch(1, sequence * 10, "a", 1), sequence as u64, Durability::Fsync);
        }
        live.deliver(durable(2), &|_| false);
        assert_eq!(waiting(&subscriber), [10, 20]);
        live.deliver(durable(4), &|_| false);
        assert_eq!(waiting(&subscriber), [10, 20, 30, 40]);
    }

    #[test]
    fn pending_updates_are_bounded_and_keep_the_newest_values() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        for n in 1..=PENDING_UPDATES_MAX as i64 + 1 {
            live.queue(&batch(1, n, if n % 2 == 0 { "even" } else { "odd" }, n), n as u64, Durability::Fsync);
        }
        assert_eq!(live.pending_updates.load(Ordering::Acquire), 2);
        let newest = PENDING_UPDATES_MAX as i64 + 1;
        live.deliver(durable(newest as u64 - 1), &|_| false);
        assert!(waiting(&subscriber).is_empty(), "nothing is seen before it is durable");
        live.deliver(durable(newest as u64), &|_| false);
        assert_eq!(waiting(&subscriber), [newest - 1, newest]);
    }

    #[test]
    fn a_slow_subscriber_keeps_the_newest_value_of_each_key() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        for n in 0..=MAILBOX_UPDATES_MAX as i64 {
            let key = if n % 2 == 0 { "even" } else { "odd" };
            live.queue(&batch(1, n, key, n), 1, Durability::Memory);
        }
        live.deliver(durable(1), &|_| false);
        let newest = MAILBOX_UPDATES_MAX as i64;
        assert_eq!(waiting(&subscriber), [newest - 1, newest]);
        assert_eq!(live.metrics.live_coalesced.get(), newest as u64 - 1);
    }

    #[test]
    fn unwatching_and_dropping_stop_the_flow() {
        let live = live();
        let (mut one, mut other) = (subscriber(&live), subscriber(&live));
        one.watch(SeriesId(1));
        other.watch(SeriesId(1));
        one.unwatch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 1, Durability::Memory);
        live.deliver(durable(1), &|_| false);
        assert!(waiting(&one).is_empty());
        assert_eq!(waiting(&other), [10]);
        drop(other);
        assert_eq!(live.watched_series.load(Ordering::Acquire), 0);
    }
}
