//! Live subscribers: values reach them after they are durable, and none of them can slow down ingest.
//!
//! Ingest queues the rows of watched series with the sequence that makes them durable; the [`Live::deliver`] side
//! moves them to the subscribers' mailboxes once the store has come that far. All subscribers share one copy of an
//! update. A mailbox is bounded: a subscriber that does not read keeps the newest value of each key and loses the ones
//! between ([`Update::ts`] tells which). If even these are too many bytes, its connection is given up
//! ([`LiveConnection::overrun`]).

mod account;
mod mailbox;
mod pending;

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use model::limits::Portion;
use model::{Batch, SeriesId, Timestamp, Value};
use parking_lot::{Mutex, RwLock};
use store::{Durability, Progress, Sequence};
use uuid::Uuid;

use crate::metrics::Metrics;
pub use account::Overrun;
use account::{Account, Accounts};
use mailbox::Mailbox;
pub use mailbox::Updates;
use pending::Pending;

/// Updates that a subscriber may leave unread before they are reduced to the newest value per key.
pub const MAILBOX_UPDATES_MAX: usize = 4_096;
/// Bytes of the updates of a mailbox that are reduced in the same way: a message to a client has fewer.
pub const MAILBOX_REDUCE_BYTES: usize = 1024 * 1024;
/// Updates of one durability class that may wait for the store, or for the thread that delivers them, before they are
/// reduced in the same way.
pub const PENDING_UPDATES_MAX: usize = 262_144;
/// Bytes of such updates that are reduced likewise: twice of what the log may hold that is not yet durable, which has room
/// for as many numbers.
pub const PENDING_REDUCE_BYTES: usize = 2 * model::limits::LOG_PENDING_BYTES_MAX;
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

impl Update {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> usize {
        // The counters of an `Arc`, and what an allocator adds to three allocations.
        const OVERHEAD_BYTES: usize = 2 * size_of::<usize>() + 3 * 16;
        let text = match &self.value {
            Value::String(text) | Value::Json(text) => text.len(),
            Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
        };
        size_of::<Self>() + OVERHEAD_BYTES + self.key.len() + text
    }
}

/// The meeting point of ingest and subscribers.
#[derive(Debug)]
pub struct Live {
    metrics: Arc<Metrics>,
    accounts: Arc<Accounts>,
    // Read on every batch; the maps behind it are touched only when somebody watches.
    watched_series: AtomicUsize,
    watchers: RwLock<HashMap<SeriesId, Vec<Arc<Mailbox>>>>,
    pending: Mutex<Pending>,
    // What `pending` holds, for the store's thread, which must not wait for those who fill or empty it.
    pending_updates: AtomicUsize,
}

/// A client's connection: what waits for its subscribers counts together.
#[derive(Debug)]
pub struct LiveConnection {
    live: Arc<Live>,
    account: Arc<Account>,
}

/// A subscriber; dropped, it stops watching.
#[derive(Debug)]
pub struct Subscriber {
    live: Arc<Live>,
    mailbox: Arc<Mailbox>,
    series: HashSet<SeriesId>,
}

impl Live {
    /// Nobody watches anything.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self::on(Portion::ALL, metrics)
    }

    /// The same on a machine whose memory allows less.
    pub fn on(memory: Portion, metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            accounts: Arc::new(Accounts::on(memory)),
            watched_series: AtomicUsize::new(0),
            watchers: RwLock::default(),
            pending: Mutex::default(),
            pending_updates: AtomicUsize::new(0),
        }
    }

    /// A connection of the user with this id, without subscribers. Nobody's connections share the id of zeros.
    pub fn connection(self: &Arc<Self>, login: Uuid) -> LiveConnection {
        LiveConnection { live: Arc::clone(self), account: Arc::new(self.accounts.open(login)) }
    }

    /// Remembers the watched rows of a batch that was appended up to `sequence`; says whether there were any.
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
        let lost = pending.push(sequence, durability, updates);
        self.metrics.live_coalesced.inc_by(lost as u64);
        self.pending_updates.store(pending.len(), Ordering::Release);
        // The caller looks at the store's progress next, and the store's thread, having set it, looks here: one of
        // the two must see what the other did.
        fence(Ordering::SeqCst);
        true
    }

    /// Whether rows wait for the store to come further. Locks nothing.
    pub fn has_pending(&self) -> bool {
        // The other half of the fence in `queue`.
        fence(Ordering::SeqCst);
        self.pending_updates.load(Ordering::Acquire) > 0
    }

    /// Hands over what `progress` has made as durable as its class asks for. Costs next to nothing when that is
    /// nothing.
    pub fn deliver(&self, progress: Progress) {
        let ready = {
            let mut pending = self.pending.lock();
            let ready = pending.take_ready(progress);
            self.pending_updates.store(pending.len(), Ordering::Release);
            ready
        };
        if ready.is_empty() {
            return;
        }
        let watchers = self.watchers.read();
        // Together, so that a row is not told by halves to a subscriber that wakes up in between.
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
    /// A subscriber that watches nothing yet.
    pub fn subscriber(&self) -> Subscriber {
        let mailbox = Arc::new(Mailbox::new(Arc::clone(&self.account)));
        self.account.add_mailbox(&mailbox);
        Subscriber { live: Arc::clone(&self.live), mailbox, series: HashSet::new() }
    }

    /// Waits until the connection was given up because it leaves too much unread: its subscribers get nothing any more.
    pub async fn overrun(&self) -> Overrun {
        self.account.overrun().await
    }
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
        self.series.insert(series)
    }

    /// Stops watching a series.
    pub fn unwatch(&mut self, series: SeriesId) {
        if self.series.remove(&series) {
            self.live.unwatch(std::iter::once(series), &self.mailbox);
        }
    }

    /// Waits until there are updates and takes them, oldest first; of very many the first.
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
    use model::ValueRef;

    use super::*;

    fn live() -> Arc<Live> {
        Arc::new(Live::new(Arc::new(Metrics::new())))
    }

    fn subscriber(live: &Arc<Live>) -> Subscriber {
        live.connection(Uuid::nil()).subscriber()
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
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        live.queue(&batch(1, 10, "a", 1), 5, Durability::Fsync);
        live.queue(&batch(1, 20, "a", 1), 4, Durability::Fsync);
        live.deliver(Progress { sealed: true, ..durable(4) });
        assert_eq!(waiting(&subscriber), [20]);
        assert!(!live.has_pending());
    }

    #[test]
    fn what_two_threads_queue_out_of_order_is_delivered_in_order() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        for sequence in [1, 4, 2, 3] {
            live.queue(&batch(1, sequence * 10, "a", 1), sequence as u64, Durability::Fsync);
        }
        live.deliver(durable(2));
        assert_eq!(waiting(&subscriber), [10, 20]);
        live.deliver(durable(4));
        assert_eq!(waiting(&subscriber), [10, 20, 30, 40]);
    }

    #[test]
    fn what_waits_for_the_store_has_a_bound_and_loses_no_newest_value() {
        let live = live();
        let mut subscriber = subscriber(&live);
        subscriber.watch(SeriesId(1));
        for n in 1..=PENDING_UPDATES_MAX as i64 + 1 {
            live.queue(&batch(1, n, if n % 2 == 0 { "even" } else { "odd" }, n), n as u64, Durability::Fsync);
        }
        assert_eq!(live.pending_updates.load(Ordering::Acquire), 2);
        let newest = PENDING_UPDATES_MAX as i64 + 1;
        live.deliver(durable(newest as u64 - 1));
        assert!(waiting(&subscriber).is_empty(), "nothing is seen before it is durable");
        live.deliver(durable(newest as u64));
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
        live.deliver(durable(1));
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
        live.deliver(durable(1));
        assert!(waiting(&one).is_empty());
        assert_eq!(waiting(&other), [10]);
        drop(other);
        assert_eq!(live.watched_series.load(Ordering::Acquire), 0);
    }
}
